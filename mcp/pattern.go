package mcp

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"
)

// Limits on a regular expression: matching takes time in proportion to the text
// and to the size of the compiled expression, which can be far larger than what
// was written ((x{1000}){3}). A text that is looked for as it is has no limit but
// that of requests.
const (
	maxRegex        = 4_096 // bytes
	maxRegexProgram = 10_000
)

// compilePattern makes the test for a pattern: whether a line contains it, or
// with regex matches it.
func compilePattern(pattern string, regex bool) (func(string) bool, error) {
	if !regex {
		return func(line string) bool { return strings.Contains(line, pattern) }, nil
	}
	if len(pattern) > maxRegex {
		return nil, &problem{
			reason: fmt.Sprintf("pattern is too long for a regular expression: %d bytes, at most %d", len(pattern), maxRegex),
			hint:   "Leave regex out to find the text itself, or look for a part of it.",
		}
	}
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return nil, &problem{
			reason: "pattern is not a regular expression: " + strings.TrimPrefix(err.Error(), "error parsing regexp: "),
			hint:   "The syntax is RE2: no look-around, no back-references. Leave regex out to find the text itself.",
		}
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err == nil && len(program.Inst) > maxRegexProgram {
		return nil, &problem{
			reason: fmt.Sprintf("pattern is too large a regular expression: %d steps, at most %d", len(program.Inst), maxRegexProgram),
			hint:   "Repeat less: x{1000} counts as a thousand x.",
		}
	}
	re, err := regexp.Compile(pattern)
	if err != nil {
		return nil, fmt.Errorf("pattern: %w", err)
	}
	return re.MatchString, nil
}
