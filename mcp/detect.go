package mcp

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
)

// detector finds secrets in text. Its span is the group that is marked, or all.
type detector struct {
	*regexp.Regexp
	group int
	// fits decides where an expression cannot, nil for always.
	fits func(string) bool
}

// secretName is what the names of secrets have in them.
const secretName = `(?:password|passwd|passphrase|secret|token|api[_-]?key|access[_-]?key|private[_-]?key|credential)`

// tokenPrefixes start tokens of well-known services, each with what may follow.
var tokenPrefixes = []struct{ prefix, rest string }{
	{`(?:AKIA|ASIA|ABIA|ACCA)`, `[0-9A-Z]{16}`},
	{`gh[pousr]_`, `[A-Za-z0-9]{36,255}`},
	{`github_pat_`, `[A-Za-z0-9_]{22,255}`},
	{`gl(?:pat|ptt|dt|rt|cbt|ft|soat|agent|oas)-`, `[A-Za-z0-9_.-]{20,}`},
	{`xox[abeoprs]-`, `[A-Za-z0-9-]{10,}`},
	{`xapp-[0-9]-`, `[A-Za-z0-9-]{10,}`},
	{`[rsp]k_(?:live|test)_`, `[A-Za-z0-9]{16,}`},
	{`whsec_`, `[A-Za-z0-9+/=]{16,}`},
	{`sk-`, `[A-Za-z0-9_-]{20,}`},
	{`AIza`, `[A-Za-z0-9_-]{35}`},
	{`ya29\.`, `[A-Za-z0-9_-]{20,}`},
	{`GOCSPX-`, `[A-Za-z0-9_-]{20,}`},
	{`npm_`, `[A-Za-z0-9]{36}`},
	{`pypi-`, `[A-Za-z0-9_-]{40,}`},
	{`hf_`, `[A-Za-z0-9]{30,}`},
	{`do[opr]_v1_`, `[a-f0-9]{64}`},
	{`SG\.`, `[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}`},
	{`hv[sb]\.`, `[A-Za-z0-9_-]{24,}`},
	{`dckr_pat_`, `[A-Za-z0-9_-]{20,}`},
	{`glsa_`, `[A-Za-z0-9_]{30,}`},
	{`AGE-SECRET-KEY-1`, `[0-9A-Z]{50,}`},
	{`eyJ`, `[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?`},
}

// detectors are the built-in ones: shapes of common credentials, private keys,
// and values that are called a secret.
var detectors = func() []detector {
	all := []detector{
		// A key whose end is not there yet, or not any more, is one to the end of
		// the text.
		{Regexp: regexp.MustCompile(`-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----(?:(?s:.*?)-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|(?s:.*)\z)`)},
		// The end of a key whose beginning is not there any more.
		{Regexp: regexp.MustCompile(`(?m)(?:^[ \t|]*[A-Za-z0-9+/=]{1,80}[ \t|]*\n)*^[ \t|]*-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----`)},
		// A line of a key without the rest of it, such as the only one on a page.
		{Regexp: regexp.MustCompile(`(?m)^[ \t|]*([A-Za-z0-9+/]{40,}={0,2})[ \t|]*$`), group: 1, fits: mixed},
		{Regexp: regexp.MustCompile(`(?i)\bauthorization["']?\s*[:=]\s*["']?(?:bearer|basic|token)\s+([A-Za-z0-9._~+/=-]{6,})`), group: 1},
		{Regexp: regexp.MustCompile(`(?i)\bbearer\s+([A-Za-z0-9._~+/=-]{16,})`), group: 1},
		{Regexp: regexp.MustCompile(`\b[A-Za-z][A-Za-z0-9+.-]*://[^\s/:@]*:([^\s/@]{3,})@`), group: 1},
		{Regexp: regexp.MustCompile(`https://hooks\.slack\.com/services/([A-Za-z0-9/]{20,})`), group: 1},
		{Regexp: regexp.MustCompile(`\b[0-9]{8,10}:AA[A-Za-z0-9_-]{33}`)},
		{Regexp: regexp.MustCompile(`(?i)` + secretName + `[A-Za-z0-9_-]*["']?[ \t]*[:=][ \t]*["']?([^\s"']{6,})`), group: 1},
	}
	for _, t := range tokenPrefixes {
		all = append(all, detector{Regexp: regexp.MustCompile(`\b` + t.prefix + t.rest)})
	}
	return all
}()

// mixed tells base64 of something from a word, a path or a hash in hex.
func mixed(s string) bool {
	return strings.ContainsAny(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") && strings.ContainsAny(s, "abcdefghijklmnopqrstuvwxyz") && strings.ContainsAny(s, "0123456789")
}

// beginnings find what can become a secret when the text goes on.
var beginnings = func() []detector {
	prefixes := make([]string, len(tokenPrefixes))
	for i, t := range tokenPrefixes {
		prefixes[i] = t.prefix
	}
	return []detector{
		{Regexp: regexp.MustCompile(`\b(?:` + strings.Join(prefixes, "|") + `)[A-Za-z0-9._/+=-]*\z`)},
		{Regexp: regexp.MustCompile(`(?i)` + secretName + `[A-Za-z0-9_-]*["']?[ \t]*[:=][ \t]*["']?([^\s"']+)\z`), group: 1},
		{Regexp: regexp.MustCompile(`(?i)\b(?:bearer|basic)\s+([A-Za-z0-9._~+/=-]{4,})\z`), group: 1},
		{Regexp: regexp.MustCompile(`\b[A-Za-z][A-Za-z0-9+.-]*://[^\s/:@]*:([^\s/@]+)\z`), group: 1},
		{Regexp: regexp.MustCompile(`https://hooks\.slack\.com/services/([A-Za-z0-9/]+)\z`), group: 1},
		{Regexp: regexp.MustCompile(`\b[0-9]{8,10}:AA[A-Za-z0-9_-]*\z`)},
		{Regexp: regexp.MustCompile(`-----BEGIN [A-Z0-9 -]*\z`)},
		{Regexp: regexp.MustCompile(`(?m)(?:^[ \t|]*[A-Za-z0-9+/=]{1,80}[ \t|]*\n)+^[ \t|]*-----E[A-Z0-9 -]*\z`)},
		{Regexp: regexp.MustCompile(`(?m)^[ \t|]*([A-Za-z0-9+/]{24,})\z`), group: 1, fits: mixed},
	}
}()

// span is a part of a text, in bytes.
type span struct{ from, to int }

// find gives the spans that detectors find, in order and apart.
func find(text string, lists ...[]detector) []span {
	var all []span
	for _, list := range lists {
		for _, d := range list {
			for _, m := range d.FindAllStringSubmatchIndex(text, -1) {
				s := span{m[2*d.group], m[2*d.group+1]}
				if s.from < s.to && (d.fits == nil || d.fits(text[s.from:s.to])) && text[s.from:s.to] != redacted {
					all = append(all, s)
				}
			}
		}
	}
	return merged(all)
}

// merged joins spans that overlap or touch.
func merged(all []span) []span {
	slices.SortFunc(all, func(a, b span) int { return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(b.to, a.to)) })
	var out []span
	for _, s := range all {
		if n := len(out); n > 0 && s.from <= out[n-1].to {
			out[n-1].to = max(out[n-1].to, s.to)
			continue
		}
		out = append(out, s)
	}
	return out
}

// redacted stands where a secret was.
const redacted = "[redacted]"

// replace puts redacted in the place of spans within text[from:], and counts
// them. What of a span lies before from does not count into the text.
func replace(text string, from int, spans []span) (string, int) {
	var b strings.Builder
	n, at := 0, from
	for _, s := range spans {
		if s.to <= from {
			continue
		}
		b.WriteString(text[at:max(s.from, at)])
		b.WriteString(redacted)
		// Lines stay lines: what follows has its place by them.
		b.WriteString(strings.Repeat("\n", strings.Count(text[max(s.from, at):s.to], "\n")))
		at, n = s.to, n+1
	}
	if n == 0 {
		return text[from:], 0
	}
	b.WriteString(text[at:])
	return b.String(), n
}
