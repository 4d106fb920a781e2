package main

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"

	"tmux-mcpd/mcp"
)

// configName is the file in the directory that findConfig looks in.
const configName = "tmux-mcpd.toml"

// maxConfig bounds the configuration file, in bytes.
const maxConfig = 1 << 20

// configFile is a configuration file whose keys and types are right. Whether
// the values are is for the settings to say.
type configFile struct {
	from   string           // what named it, "" for the place by rule
	path   string           // absolute; "" if there is none
	top    map[string]value // by key
	listen []listenTable
}

// listenTable is one [[listen]] table.
type listenTable struct {
	values map[string]value
	from   string
}

// findConfig reads the configuration file: the one that was named, which must be
// there, or tmux-mcpd/tmux-mcpd.toml in the user's configuration directory (XDG
// Base Directory Specification), which need not.
func findConfig(src *sources) (*configFile, error) {
	s := &settings[slices.IndexFunc(settings, func(s setting) bool { return s.flag == configFlag })]
	if v, ok := src.value(s); ok {
		if err := cleanText(v.items[0]); err != nil {
			return nil, coded(exitUsage, "%s: %w", v.from, err)
		}
		path, err := filepath.Abs(v.items[0])
		if err != nil {
			return nil, fmt.Errorf("configuration file: %w", err)
		}
		f, err := readConfig(path)
		if err == nil {
			f.from = v.from
		}
		return f, err
	}
	base, _ := src.lookup("XDG_CONFIG_HOME")
	if !filepath.IsAbs(base) {
		home, _ := src.lookup("HOME")
		if !filepath.IsAbs(home) {
			return &configFile{}, nil
		}
		base = filepath.Join(home, ".config")
	}
	f, err := readConfig(filepath.Join(base, "tmux-mcpd", configName))
	if errors.Is(err, fs.ErrNotExist) {
		return &configFile{}, nil
	}
	return f, err
}

// readConfig reads a file. It decides what agents may see and do, so nobody else
// may be able to write to it.
func readConfig(path string) (*configFile, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, coded(exitUsage, "configuration file: %w", err)
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return nil, coded(exitUsage, "configuration file: %w", err)
	}
	st, ok := fi.Sys().(*syscall.Stat_t)
	switch {
	case !fi.Mode().IsRegular() || fi.Size() > maxConfig:
		return nil, coded(exitUsage, "configuration file %s: it is no plain file of at most %d bytes", path, maxConfig)
	case !ok || int(st.Uid) != os.Geteuid() && st.Uid != 0:
		return nil, coded(exitUsage, "configuration file %s belongs to another user", path)
	case fi.Mode().Perm()&0o002 != 0:
		return nil, coded(exitUsage, "configuration file %s has mode %04o: everybody may write to it", path, fi.Mode().Perm())
	}
	text := make([]byte, fi.Size())
	n, err := f.ReadAt(text, 0)
	if n < len(text) {
		return nil, coded(exitUsage, "configuration file: %w", err)
	}
	return parseConfig(path, text)
}

// parseConfig takes a file's text apart.
func parseConfig(path string, text []byte) (*configFile, error) {
	var doc map[string]any
	if err := toml.Unmarshal(text, &doc); err != nil {
		at := path
		var d *toml.DecodeError
		if errors.As(err, &d) {
			line, _ := d.Position()
			at += ":" + strconv.Itoa(line)
		}
		return nil, coded(exitUsage, "%s: %s", at, strings.TrimPrefix(err.Error(), "toml: "))
	}
	c := &configFile{path: path}
	at := positions(path, text)
	tables, err := listenTables(doc, at)
	if err != nil {
		return nil, err
	}
	delete(doc, listenKey)
	if c.top, err = readTable(doc, false, func(key string) string { return at.of(key) }, filepath.Dir(path)); err != nil {
		return nil, err
	}
	for i, t := range tables {
		here := func(key string) string { return at.of(listenKey, strconv.Itoa(i), key) }
		values, err := readTable(t, true, here, filepath.Dir(path))
		if err != nil {
			return nil, err
		}
		c.listen = append(c.listen, listenTable{values, at.of(listenKey, strconv.Itoa(i))})
	}
	return c, nil
}

// listenKey is the key of the tables of further sockets.
const listenKey = "listen"

func listenTables(doc map[string]any, at places) ([]map[string]any, error) {
	v, ok := doc[listenKey]
	if !ok {
		return nil, nil
	}
	list, ok := v.([]any)
	if !ok {
		return nil, coded(exitUsage, "%s: listen is for tables of further sockets: write [[listen]]; the path of the daemon's own socket is the key path", at.of(listenKey))
	}
	tables := make([]map[string]any, len(list))
	for i := range list {
		if tables[i], ok = list[i].(map[string]any); !ok {
			return nil, coded(exitUsage, "%s: listen is for tables: write [[listen]]", at.of(listenKey))
		}
	}
	return tables, nil
}

// alsoWords are the paths that can be a word instead, which has no slash.
var alsoWords = []string{"tmux-bin", "audit"}

// readTable checks the keys and types of the top level or of a [[listen]].
func readTable(doc map[string]any, further bool, at func(key string) string, dir string) (map[string]value, error) {
	known := map[string]*setting{}
	for i := range settings {
		if s := &settings[i]; s.key != "" && (!further || s.of != nil) {
			known[s.key] = s
		}
	}
	out := map[string]value{}
	for _, key := range slices.Sorted(maps.Keys(doc)) {
		s := known[key]
		if s == nil {
			return nil, unknownKey(key, further, at(key), slices.Collect(maps.Keys(known)))
		}
		items, ok := s.items(doc[key])
		if !ok {
			return nil, coded(exitUsage, "%s: %s takes %s", at(key), key, s.kindOf())
		}
		if s.path && items[0] != "" && !filepath.IsAbs(items[0]) && (!slices.Contains(alsoWords, s.flag) || strings.Contains(items[0], "/")) {
			items[0] = filepath.Join(dir, items[0])
		}
		out[key] = value{items, at(key)}
	}
	return out, nil
}

func unknownKey(key string, further bool, at string, known []string) error {
	where := "the configuration file has"
	if further {
		where = "[[listen]] has"
	} else {
		known = append(known, listenKey)
	}
	hint := ""
	if near := mcp.Nearest(key, known); near != "" {
		hint = "; did you mean " + near + "?"
	}
	return coded(exitUsage, "%s: %s no key %q%s", at, where, key, hint)
}

func (s *setting) kindOf() kind {
	if s.kind == "" {
		return text
	}
	return s.kind
}

// items reads a value as the words that a flag would give.
func (s *setting) items(v any) ([]string, bool) {
	if k := s.kindOf(); k == texts || k == numbers {
		list, ok := v.([]any)
		items := make([]string, len(list))
		for i := range list {
			if _, isText := list[i].(string); !ok || isText != (k == texts) {
				return nil, false
			}
			if _, isNumber := list[i].(int64); isNumber != (k == numbers) {
				return nil, false
			}
			items[i] = fmt.Sprint(list[i])
		}
		return items, ok
	}
	ok := false
	switch s.kindOf() {
	case text:
		_, ok = v.(string)
	case number:
		_, ok = v.(int64)
	case boolean:
		_, ok = v.(bool)
	}
	return []string{fmt.Sprint(v)}, ok
}

// places tells where in the file a key stands.
type places struct {
	path  string
	lines map[string]int // by the words of the key, the index of an array among them
}

// of is the place of a key as FILE:LINE, or of the nearest table around it that
// is known: one written in braces is on the line of its key.
func (p places) of(words ...string) string {
	for n := len(words); n > 0; n-- {
		if line, ok := p.lines[strings.Join(words[:n], "\x00")]; ok {
			return p.path + ":" + strconv.Itoa(line)
		}
	}
	return p.path
}

// positions finds the lines of the keys in a text that is known to parse.
func positions(path string, text []byte) places {
	at := places{path, map[string]int{}}
	counts := map[string]int{}
	var parser unstable.Parser
	parser.Reset(text)
	var table []string
	for parser.NextExpression() {
		e := parser.Expression()
		var words []string
		line := 0
		for it := e.Key(); it.Next(); {
			words = append(words, string(it.Node().Data))
			line = parser.Shape(it.Node().Raw).Start.Line
		}
		switch e.Kind {
		case unstable.ArrayTable:
			name := strings.Join(words, "\x00")
			words = append(words, strconv.Itoa(counts[name]))
			counts[name]++
			table = words
		case unstable.Table:
			table = words
		default:
			words = slices.Concat(table, words)
		}
		// A dotted key and a header make the tables that they go through.
		for n := range words {
			name := strings.Join(words[:n+1], "\x00")
			if _, ok := at.lines[name]; !ok {
				at.lines[name] = line
			}
		}
	}
	return at
}
