package mcp

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// expression is all of a detector as one expression, which looks everywhere.
func (d *detector) expression() *detector {
	if d.starts == nil {
		return &detector{Regexp: d.Regexp, group: d.group, fits: d.fits}
	}
	var starts []string
	for _, word := range d.starts {
		starts = append(starts, regexp.QuoteMeta(word))
	}
	rest := strings.TrimPrefix(d.String(), `\A`)
	return &detector{Regexp: regexp.MustCompile(`\b(?:` + strings.Join(starts, "|") + `)` + rest)}
}

// What a detector looks at first costs it nothing that its expression finds.
func TestDetectorsFindWhatTheirExpressionsFind(t *testing.T) {
	pieces := []string{
		"\n", " ", "\t", "|", "-", ".", "_", "/", ":", "=", `"`, "'", "@", "ſ", "K", "x", "word", "=" + redacted + "\n",
		"-----BEGIN ", "RSA PRIVATE KEY-----", "-----END ", "-----E", "Authorization:", "aUTHORIZATION=", "bearer ", "BEARER\n", "basic ", "token ",
		"https://", "postgres://u:", "https://hooks.slack.com/services/", "12345678:AA", "password=", "paſſword: ", "Secret_key=", "toKen=", "API-KEY=", "credentialſ: ",
		"eyJ", ".eyJ", strings.Repeat("Ab3", 5), strings.Repeat("Zq9k", 12), strings.Repeat("0a", 32), strings.Repeat("AB12", 14),
	}
	for _, token := range tokens {
		pieces = append(pieces, token.starts...)
	}
	for _, p := range planted {
		pieces = append(pieces, fmt.Sprintf(p.around, p.secret))
	}
	type pair struct{ quick, whole *detector }
	var all []pair
	for _, list := range [][]detector{detectors, beginnings} {
		for i := range list {
			all = append(all, pair{&list[i], list[i].expression()})
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 1, 12).Draw(t, "pieces"), "")
		for _, d := range all {
			quick, whole := merged(d.quick.find(nil, text, nil)), merged(d.whole.find(nil, text, nil))
			if fmt.Sprint(quick) != fmt.Sprint(whole) {
				t.Fatalf("%s finds %v, its expression %v in %q", d.whole.Regexp, quick, whole, text)
			}
		}
	})
}

// BenchmarkFind is a look for secrets in a text of a screen that has none.
//
//	go test -run xxx -bench Find ./mcp
func BenchmarkFind(b *testing.B) {
	text := screenResult(16 << 10).Text
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		find(text, detectors, beginnings)
	}
}
