package mcp

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
)

// detector finds secrets in text. Its span is the group that is marked, or all.
// Expressions are slow, and most text has nothing in it: what can be told without
// them is looked at first, with the same result.
type detector struct {
	*regexp.Regexp
	group int
	// fits decides where an expression cannot, nil for always.
	fits func(string) bool

	starts   []string       // words of which it begins with one; the expression is of the rest, anchored
	needs    string         // is in all that it finds
	words    []string       // one is in all that it finds, in whatever case
	oneLine  bool           // what it finds lies in one line
	lastLine bool           // what it finds lies in the last line
	here     *regexp.Regexp // of an expression for what begins with a word: the same, anchored
	ends     bool           // what that finds ends with the text
}

// atWord makes a detector one of what begins with a word.
func (d detector) atWord(expr string) detector {
	d.Regexp, d.here = regexp.MustCompile(`\b(?:`+expr+`)`), regexp.MustCompile(`\A(?:`+expr+`)`)
	d.ends = strings.HasSuffix(expr, `\z`)
	return d
}

// secretName is what the names of secrets have in them.
const secretName = `(?:password|passwd|passphrase|secret|token|api[_-]?key|access[_-]?key|private[_-]?key|credential)`

// secretWords are in every secretName.
var secretWords = []string{"pass", "secret", "token", "key", "credential"}

// tokens are those of well-known services: how they start, and what follows.
var tokens = []struct {
	starts []string
	rest   string
}{
	{[]string{"AKIA", "ASIA", "ABIA", "ACCA"}, `[0-9A-Z]{16}`},
	{each("gh", "pousr", "_"), `[A-Za-z0-9]{36,255}`},
	{[]string{"github_pat_"}, `[A-Za-z0-9_]{22,255}`},
	{[]string{"glpat-", "glptt-", "gldt-", "glrt-", "glcbt-", "glft-", "glsoat-", "glagent-", "gloas-"}, `[A-Za-z0-9_.-]{20,}`},
	{each("xox", "abeoprs", "-"), `[A-Za-z0-9-]{10,}`},
	{each("xapp-", "0123456789", "-"), `[A-Za-z0-9-]{10,}`},
	{append(each("", "rsp", "k_live_"), each("", "rsp", "k_test_")...), `[A-Za-z0-9]{16,}`},
	{[]string{"whsec_"}, `[A-Za-z0-9+/=]{16,}`},
	{[]string{"sk-"}, `[A-Za-z0-9_-]{20,}`},
	{[]string{"AIza"}, `[A-Za-z0-9_-]{35}`},
	{[]string{"ya29."}, `[A-Za-z0-9_-]{20,}`},
	{[]string{"GOCSPX-"}, `[A-Za-z0-9_-]{20,}`},
	{[]string{"npm_"}, `[A-Za-z0-9]{36}`},
	{[]string{"pypi-"}, `[A-Za-z0-9_-]{40,}`},
	{[]string{"hf_"}, `[A-Za-z0-9]{30,}`},
	{each("do", "opr", "_v1_"), `[a-f0-9]{64}`},
	{[]string{"SG."}, `[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}`},
	{each("hv", "sb", "."), `[A-Za-z0-9_-]{24,}`},
	{[]string{"dckr_pat_"}, `[A-Za-z0-9_-]{20,}`},
	{[]string{"glsa_"}, `[A-Za-z0-9_]{30,}`},
	{[]string{"AGE-SECRET-KEY-1"}, `[0-9A-Z]{50,}`},
	{[]string{"eyJ"}, `[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?`},
}

// each are words that differ in one letter.
func each(before, letters, after string) []string {
	var all []string
	for _, l := range letters {
		all = append(all, before+string(l)+after)
	}
	return all
}

// detectors are the built-in ones: shapes of common credentials, private keys,
// and values that are called a secret.
var detectors = func() []detector {
	all := []detector{
		// A key whose end is not there yet, or not any more, is one to the end of
		// the text.
		{Regexp: regexp.MustCompile(`-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----(?:(?s:.*?)-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|(?s:.*)\z)`), needs: "-----BEGIN "},
		// The end of a key whose beginning is not there any more.
		{Regexp: regexp.MustCompile(`(?m)(?:^[ \t|]*[A-Za-z0-9+/=]{1,80}[ \t|]*\n)*^[ \t|]*-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----`), needs: "-----END "},
		// A line of a key without the rest of it, such as the only one on a page.
		{Regexp: regexp.MustCompile(`(?m)^[ \t|]*([A-Za-z0-9+/]{40,}={0,2})[ \t|]*$`), group: 1, fits: mixed},
		detector{group: 1, words: []string{"authorization"}}.atWord(`(?i)authorization["']?\s*[:=]\s*["']?(?:bearer|basic|token)\s+([A-Za-z0-9._~+/=-]{6,})`),
		detector{group: 1, words: []string{"bearer"}}.atWord(`(?i)bearer\s+([A-Za-z0-9._~+/=-]{16,})`),
		detector{group: 1, needs: "://"}.atWord(`[A-Za-z][A-Za-z0-9+.-]*://[^\s/:@]*:([^\s/@]{3,})@`),
		{Regexp: regexp.MustCompile(`https://hooks\.slack\.com/services/([A-Za-z0-9/]{20,})`), group: 1},
		detector{needs: ":AA"}.atWord(`[0-9]{8,10}:AA[A-Za-z0-9_-]{33}`),
		{Regexp: regexp.MustCompile(`(?i)` + secretName + `[A-Za-z0-9_-]*["']?[ \t]*[:=][ \t]*["']?([^\s"']{6,})`), group: 1, words: secretWords, oneLine: true},
	}
	for _, t := range tokens {
		all = append(all, detector{Regexp: regexp.MustCompile(`\A` + t.rest), starts: t.starts})
	}
	return all
}()

// mixed tells base64 of something from a word, a path or a hash in hex.
func mixed(s string) bool {
	return strings.ContainsAny(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") && strings.ContainsAny(s, "abcdefghijklmnopqrstuvwxyz") && strings.ContainsAny(s, "0123456789")
}

// beginnings find what can become a secret when the text goes on.
var beginnings = func() []detector {
	var starts []string
	for _, t := range tokens {
		starts = append(starts, t.starts...)
	}
	return []detector{
		{Regexp: regexp.MustCompile(`\A[A-Za-z0-9._/+=-]*\z`), starts: starts, lastLine: true},
		{Regexp: regexp.MustCompile(`(?i)` + secretName + `[A-Za-z0-9_-]*["']?[ \t]*[:=][ \t]*["']?([^\s"']+)\z`), group: 1, lastLine: true},
		detector{group: 1}.atWord(`(?i)(?:bearer|basic)\s+([A-Za-z0-9._~+/=-]{4,})\z`),
		detector{group: 1, lastLine: true}.atWord(`[A-Za-z][A-Za-z0-9+.-]*://[^\s/:@]*:([^\s/@]+)\z`),
		{Regexp: regexp.MustCompile(`https://hooks\.slack\.com/services/([A-Za-z0-9/]+)\z`), group: 1, lastLine: true},
		detector{lastLine: true}.atWord(`[0-9]{8,10}:AA[A-Za-z0-9_-]*\z`),
		{Regexp: regexp.MustCompile(`-----BEGIN [A-Z0-9 -]*\z`), lastLine: true},
		{Regexp: regexp.MustCompile(`(?m)(?:^[ \t|]*[A-Za-z0-9+/=]{1,80}[ \t|]*\n)+^[ \t|]*-----E[A-Z0-9 -]*\z`), needs: "-----E"},
		{Regexp: regexp.MustCompile(`(?m)^[ \t|]*([A-Za-z0-9+/]{24,})\z`), group: 1, fits: mixed, lastLine: true},
	}
}()

// span is a part of a text, in bytes.
type span struct{ from, to int }

// find gives the spans that detectors find, in order and apart.
func find(text string, lists ...[]detector) []span { return findAcross(text, nil, lists...) }

// findAcross is find in a text that was put together from lines at cuts: a word may
// begin there, whatever is before it.
func findAcross(text string, cuts []int, lists ...[]detector) []span {
	var all []span
	for _, list := range lists {
		for i := range list {
			all = list[i].find(all, text, cuts)
		}
	}
	return merged(all)
}

// find appends what the detector finds in a text.
func (d *detector) find(all []span, text string, cuts []int) []span {
	switch {
	case d.starts != nil:
		return d.findTokens(all, text, cuts)
	case d.oneLine:
		at := 0
		for line := range strings.Lines(text) {
			all = d.findIn(all, text, nil, at, at+len(line))
			at += len(line)
		}
		return all
	case d.lastLine:
		return d.findIn(all, text, cuts, strings.LastIndexByte(text, '\n')+1, len(text))
	}
	return d.findIn(all, text, cuts, 0, len(text))
}

// farthest is how far a secret that begins where lines were put together is looked
// for, in bytes.
const farthest = 4 << 10

// findIn appends what the expression finds in a part of a text.
func (d *detector) findIn(all []span, text string, cuts []int, from, to int) []span {
	part := text[from:to]
	if !strings.Contains(part, d.needs) || !d.hasWord(part) {
		return all
	}
	add := func(at int, m []int) {
		s := span{at + m[2*d.group], at + m[2*d.group+1]}
		if s.from < s.to && (d.fits == nil || d.fits(text[s.from:s.to])) && text[s.from:s.to] != redacted {
			all = append(all, s)
		}
	}
	for _, m := range d.FindAllStringSubmatchIndex(part, -1) {
		add(from, m)
	}
	if d.here == nil {
		return all
	}
	for _, cut := range cuts {
		if cut <= from || cut >= to || !wordByte(text[cut-1]) || d.ends && to-cut > farthest {
			continue
		}
		if m := d.here.FindStringSubmatchIndex(text[cut:min(cut+farthest, to)]); m != nil {
			add(cut, m)
		}
	}
	return all
}

// hasWord reports whether one of the words, if it has any, is in a text. To an
// expression the letter ſ is an s as well; what has it is left to the expression.
func (d *detector) hasWord(text string) bool {
	if d.words == nil || strings.Contains(text, "ſ") {
		return true
	}
	lower := strings.ToLower(text)
	return slices.ContainsFunc(d.words, func(w string) bool { return strings.Contains(lower, w) })
}

// findTokens finds what begins with one of the detector's words, at the beginning
// of a word of the text.
func (d *detector) findTokens(all []span, text string, cuts []int) []span {
	begin := 0
	if d.lastLine {
		begin = strings.LastIndexByte(text, '\n') + 1
	}
	for _, start := range d.starts {
		for at := begin; ; {
			n := strings.Index(text[at:], start)
			if n < 0 {
				break
			}
			from := at + n
			at = from + len(start)
			if from > 0 && wordByte(text[from-1]) {
				if _, cut := slices.BinarySearch(cuts, from); !cut {
					continue
				}
			}
			if m := d.FindStringIndex(text[at:]); m != nil {
				all = append(all, span{from, at + m[1]})
				at += m[1]
			}
		}
	}
	return all
}

// wordByte is what \b of an expression takes for a part of a word.
func wordByte(c byte) bool {
	return c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
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
