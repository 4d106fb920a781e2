package mcp

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"tmux-mcpd/controlmode"
)

// keyNames is the closed list of named keys, by their lower-case spelling: tmux
// does not mind case (key-string.c, 3.2a to 3.8). Mouse keys and those that only
// tmux itself uses are not among them.
var keyNames = func() map[string]string {
	all := map[string]string{}
	for _, name := range strings.Fields("Enter Tab BTab Space BSpace Escape Up Down Left Right Home End Insert IC Delete DC " +
		"PageUp PgUp PPage PageDown PgDn NPage F1 F2 F3 F4 F5 F6 F7 F8 F9 F10 F11 F12 " +
		"KP0 KP1 KP2 KP3 KP4 KP5 KP6 KP7 KP8 KP9 KP/ KP* KP- KP+ KP. KPEnter") {
		all[strings.ToLower(name)] = name
	}
	return all
}()

// keyList is the list in the words of the tools' documentation.
const keyList = "Enter, Tab, BTab, Space, BSpace, Escape, Up, Down, Left, Right, Home, End, Insert (IC), Delete (DC), " +
	"PageUp (PgUp, PPage), PageDown (PgDn, NPage), F1 to F12, KP0 to KP9, KP/, KP*, KP-, KP+, KP., KPEnter; any of them " +
	"after C-, M- and S- in any order; C- or ^ with a letter or one of @ [ \\ ] ^ _ ?; M- with any character, C-M- with what C- takes"

// controlChars are the characters that make a key after C-. tmux would type the
// name of some others as text, and send nothing at all for yet others (3.3a to
// 3.8, both tried).
const controlChars = `abcdefghijklmnopqrstuvwxyz@[\]^_?`

// otherNames are names that other programs give to keys.
var otherNames = map[string]string{
	"esc": "Escape", "return": "Enter", "cr": "Enter", "ret": "Enter", "newline": "Enter", "linefeed": "Enter",
	"backspace": "BSpace", "bs": "BSpace", "del": "Delete", "ins": "Insert", "spc": "Space", "spacebar": "Space",
	"arrowup": "Up", "arrowdown": "Down", "arrowleft": "Left", "arrowright": "Right", "uparrow": "Up", "downarrow": "Down",
	"leftarrow": "Left", "rightarrow": "Right", "page_up": "PageUp", "page_down": "PageDown", "pgdown": "PageDown",
	"prior": "PageUp", "next": "PageDown", "backtab": "BTab", "kp_enter": "KPEnter",
}

// modifierNames are what is written for modifiers, tmux's own and others', with
// the sign behind them.
var modifierNames = map[string]byte{
	"c": 'C', "ctrl": 'C', "control": 'C', "m": 'M', "alt": 'M', "meta": 'M', "option": 'M', "s": 'S', "shift": 'S',
}

// key reads keys as tmux reads one key argument. It gives tmux's name of the key
// that they are, "" for text; and an error for what only looks like a key.
func key(keys string) (name string, err *problem) {
	if name, ok := keyName(keys); ok {
		return name, nil
	}
	if near := likeKeys(keys); near != nil {
		return "", &problem{
			reason: fmt.Sprintf("%s is no key, and looks like one; nothing was sent", quote(keys)),
			hint:   fmt.Sprintf("Did you mean %s? To type it as text, set literal to true.", strings.Join(near, " or ")),
		}
	}
	return "", nil
}

// keyName gives tmux's name of a key of the closed list.
func keyName(s string) (string, bool) {
	if len(s) == 2 && s[0] == '^' && strings.IndexByte(controlChars, lower(s[1])) >= 0 {
		return "C-" + s[1:], true
	}
	mods, rest := modifiers(s)
	if name, ok := keyNames[strings.ToLower(rest)]; ok {
		return mods + name, true
	}
	if len(rest) != 1 || rest[0] <= ' ' || rest[0] > '~' {
		return "", false
	}
	switch mods {
	case "C-", "C-M-":
		return mods + rest, strings.IndexByte(controlChars, lower(rest[0])) >= 0
	case "M-":
		return mods + rest, true
	}
	return "", false
}

// modifiers takes tmux's own modifiers from the front of a name and gives them in
// one order.
func modifiers(s string) (mods, rest string) {
	var c, m, shift bool
	for len(s) > 2 && s[1] == '-' {
		switch lower(s[0]) {
		case 'c':
			c = true
		case 'm':
			m = true
		case 's':
			shift = true
		default:
			return written(c, m, shift), s
		}
		s = s[2:]
	}
	return written(c, m, shift), s
}

func written(c, m, s bool) string {
	mods := ""
	for _, mod := range []struct {
		on   bool
		name string
	}{{c, "C-"}, {m, "M-"}, {s, "S-"}} {
		if mod.on {
			mods += mod.name
		}
	}
	return mods
}

func lower(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}

// longestKey is the longest text that may look like a key.
const longestKey = 24

// likeKeys gives the keys that a text which is none looks like; nil for what is
// plainly text.
func likeKeys(s string) []string {
	if len(s) > longestKey || strings.ContainsAny(s, " \t\r\n") {
		return nil
	}
	inner, bracketed := strings.CutPrefix(s, "<")
	if bracketed {
		if inner, bracketed = strings.CutSuffix(inner, ">"); !bracketed {
			return nil
		}
	}
	mods, rest := foreignModifiers(inner)
	if mods != "" && rest != "" {
		return modified(mods, rest)
	}
	name, known := keyNames[strings.ToLower(inner)]
	if other, ok := otherNames[strings.ToLower(inner)]; ok {
		name, known = other, true
	}
	switch {
	case bracketed && known:
		return []string{name}
	case bracketed, inner == "" || inner[0] < 'A' || inner[0] > 'Z':
		return nil // a word like any other
	case known:
		return []string{name}
	case len(inner) > 4:
		return nearKeys(inner, 1)
	}
	return nil
}

// foreignModifiers takes modifiers from the front, spelled as anybody spells
// them, as in C-Entr, Ctrl+C or Alt-x.
func foreignModifiers(s string) (mods, rest string) {
	var c, m, shift bool
	for {
		i := strings.IndexAny(s, "-+")
		if i < 1 {
			return written(c, m, shift), s
		}
		switch modifierNames[strings.ToLower(s[:i])] {
		case 'C':
			c = true
		case 'M':
			m = true
		case 'S':
			shift = true
		default:
			return written(c, m, shift), s
		}
		s = s[i+1:]
	}
}

// modified gives the keys that may be meant by modifiers and something behind
// them.
func modified(mods, rest string) []string {
	if other, ok := otherNames[strings.ToLower(rest)]; ok {
		rest = other
	}
	if name, ok := keyName(mods + rest); ok {
		return []string{name}
	}
	near := nearKeys(rest, max(2, len(rest)/2))
	if near == nil {
		return []string{mods + "Enter", mods + "a"} // what such names look like
	}
	for i := range near {
		near[i] = mods + near[i]
	}
	return near
}

// nearKeys gives up to three named keys within an edit distance, nearest first.
func nearKeys(s string, most int) []string {
	s = strings.ToLower(s)
	distance := map[string]int{}
	for name := range keyNames {
		if d := editDistance(s, name); d <= most {
			distance[name] = d
		}
	}
	for name, of := range otherNames {
		at, ok := distance[strings.ToLower(of)]
		if d := editDistance(s, name); d <= most && (!ok || d < at) {
			distance[strings.ToLower(of)] = d
		}
	}
	names := slices.SortedFunc(maps.Keys(distance), func(a, b string) int {
		if distance[a] != distance[b] {
			return distance[a] - distance[b]
		}
		return strings.Compare(a, b)
	})
	var near []string
	for _, name := range names[:min(len(names), 3)] {
		near = append(near, keyNames[name])
	}
	return near
}

// hasBytes refuses a key that tmux would not send: where it has no bytes for a
// key with modifiers it types the name, or sends nothing (tried on 3.3a, 3.5a,
// 3.7c and 3.8, in programs that ask for nothing special).
func hasBytes(name, version string) error {
	mods, rest := modifiers(name)
	sent := true
	switch rest {
	case "Enter", "Tab", "BTab", "Space", "BSpace", "Escape":
		v, err := controlmode.ParseVersion(version)
		old := err != nil || !v.AtLeast("3.5")
		never := (rest == "BSpace" || rest == "Escape") && strings.Contains(mods, "C-")
		always := mods == "" || mods == "M-" || rest == "Space" && !strings.Contains(mods, "S-")
		sent = always || !old && !never
	default:
		if strings.HasPrefix(rest, "KP") {
			sent = mods == "" || mods == "M-"
		}
	}
	if sent {
		return nil
	}
	hint := "Press the key without " + strings.TrimSuffix(mods, "-") + ", or type the bytes that the program expects with literal set to true."
	if name == "S-Tab" {
		hint = "BTab is that key."
	}
	return &problem{reason: fmt.Sprintf("tmux %s has nothing to send for the key %s; nothing was sent", version, name), hint: hint}
}
