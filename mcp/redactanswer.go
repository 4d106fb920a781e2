package mcp

import (
	"encoding/json"
	"fmt"
	"regexp"
)

// result takes secrets out of a finished answer. prior is what was taken out of
// it before.
func (r *redactor) result(res *toolResult, prior int) *toolResult {
	out := *res
	var inText, inJSON int
	out.Text, inText = r.text(res.Text)
	if res.encode == nil && res.Structured != nil {
		out.Structured, inJSON = r.json(res.Structured)
	}
	n := max(inText, inJSON) + prior
	if res.Meta != nil {
		if raw, err := json.Marshal(res.Meta); err == nil {
			if raw, k := r.json(raw); k > 0 {
				out.Meta = nil
				n += k
				_ = json.Unmarshal(raw, &out.Meta)
			}
		}
	}
	if n == 0 {
		return res
	}
	meta := map[string]any{metaRedacted: n}
	for k, v := range out.Meta {
		meta[k] = v
	}
	out.Meta = meta
	out.Text = fmt.Sprintf("[%s redacted]\n", plural(n, "secret")) + out.Text
	return &out
}

var secretKey = regexp.MustCompile(`(?i)` + secretName)

// json takes secrets out of the strings of a JSON text of ours. A string whose
// key is a secret's name, such as a variable of the environment, is one.
func (r *redactor) json(raw []byte) (json.RawMessage, int) {
	var out []byte
	n, done, key := 0, 0, ""
	for i := 0; i < len(raw); i++ {
		if raw[i] != '"' {
			continue
		}
		end := i + 1
		for end < len(raw) && raw[end] != '"' {
			if raw[end] == '\\' {
				end++
			}
			end++
		}
		end = min(end+1, len(raw))
		var s string
		if err := json.Unmarshal(raw[i:end], &s); err != nil {
			return raw, n
		}
		if end < len(raw) && raw[end] == ':' {
			key = s
		} else if clean, k := r.named(key, s); k > 0 {
			out = append(out, raw[done:i]...)
			out = appendQuoted(out, clean)
			done, n = end, n+k
		}
		i = end - 1
	}
	if n == 0 {
		return raw, 0
	}
	return append(out, raw[done:]...), n
}

func (r *redactor) named(key, s string) (string, int) {
	if s != "" && s != redacted && isVariable(key) && secretKey.MatchString(key) {
		return redacted, 1
	}
	return r.text(s)
}
