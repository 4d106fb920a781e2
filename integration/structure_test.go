package integration

import (
	"bytes"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// module is the module's path: imports below it are ours.
const module = "tmux-mcpd"

// allowed says which packages outside the standard library each package may
// import, tests excepted. Whatever is not listed is forbidden, and so is a
// package that is not listed. An entry ending in / covers all below it.
var allowed = map[string][]string{
	// Bytes and tmux's words; a pty and the system calls around it.
	"controlmode": {"github.com/creack/pty", "golang.org/x/term", "golang.org/x/sys/unix"},
	// A scripted tmux for the tests of whoever uses a Client.
	"controlmode/controltest": {"tmux-mcpd/controlmode"},
	// Meaning and time. A logger for what no caller hears; process ancestry
	// needs system calls.
	"state": {
		"tmux-mcpd/controlmode", "tmux-mcpd/state/transcript",
		"go.uber.org/zap", "go.uber.org/zap/zapcore", "golang.org/x/sys/unix",
	},
	// Pure: a byte stream in, rows out. Testable without anything.
	"state/transcript": {},
	// Makes the width table; run by hand.
	"state/transcript/internal/widthgen": {},
	// Records what real programs print; run by hand.
	"state/transcript/internal/record": {},
	// The tools. controlmode only for ids and commands.
	"mcp": {
		"tmux-mcpd/controlmode", "tmux-mcpd/state",
		"github.com/modelcontextprotocol/go-sdk/", "github.com/google/jsonschema-go/",
		"go.uber.org/zap", "go.uber.org/zap/zapcore", "go.uber.org/zap/exp/zapslog",
		"golang.org/x/sys/unix",
	},
	// The only place where everything meets. Not the SDK itself: a bridge is
	// started for every client and speaks the protocol without it.
	"cmd/tmux-mcpd": {
		"tmux-mcpd/controlmode", "tmux-mcpd/state", "tmux-mcpd/mcp",
		"go.uber.org/zap", "go.uber.org/zap/zapcore",
		"gopkg.in/natefinch/lumberjack.v2", "golang.org/x/sys/unix", "golang.org/x/term",
		"github.com/pelletier/go-toml/v2", "github.com/pelletier/go-toml/v2/unstable",
		// Clients keep comments in their JSON; systemd hands over sockets and listens.
		"github.com/tailscale/hujson", "github.com/coreos/go-systemd/v22/activation", "github.com/coreos/go-systemd/v22/daemon",
	},
	// Tests of the whole program; whatever they share is theirs alone.
	"integration":  {"tmux-mcpd/", "go.uber.org/", "golang.org/x/", "github.com/creack/pty"},
	"integration/": {"tmux-mcpd/", "go.uber.org/", "golang.org/x/", "github.com/creack/pty"},
}

// badNames are package names that say nothing about what is inside.
var badNames = []string{"util", "utils", "common", "helpers", "types", "models", "interfaces", "base", "misc"}

type goFile struct {
	path string // from the root, slashes
	dir  string
	test bool
	src  []byte
	ast  *ast.File
}

// goFiles parses every Go file of the repository, whatever its build tags, so
// that the rules hold on every platform.
func goFiles(t *testing.T) []goFile {
	t.Helper()
	var files []goFile
	fset := token.NewFileSet()
	for _, path := range repoFiles(t) {
		if !strings.HasSuffix(path, ".go") {
			continue
		}
		src, err := os.ReadFile(filepath.Join("..", path))
		if err != nil {
			t.Fatal(err)
		}
		tree, err := parser.ParseFile(fset, path, src, parser.ParseComments)
		if err != nil {
			t.Error(err)
			continue
		}
		files = append(files, goFile{path, filepath.ToSlash(filepath.Dir(path)), strings.HasSuffix(path, "_test.go"), src, tree})
	}
	if len(files) < 10 {
		t.Fatalf("only %d Go files found: the walk is broken", len(files))
	}
	return files
}

// repoFiles lists the files of the repository, build products and caches left
// out. The working directory of a test is its package's.
func repoFiles(t *testing.T) []string {
	t.Helper()
	var paths []string
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel("..", path)
		if err != nil {
			return err
		}
		if d.IsDir() {
			switch filepath.Base(rel) {
			case ".git", "bin", ".cache", "node_modules":
				return filepath.SkipDir
			}
			return nil
		}
		if d.Type().IsRegular() && d.Name() != ".git" {
			paths = append(paths, filepath.ToSlash(rel))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

func permitted(list []string, path string) bool {
	return slices.ContainsFunc(list, func(entry string) bool {
		return path == entry || strings.HasSuffix(entry, "/") && strings.HasPrefix(path, entry)
	})
}

// TestStructureImports keeps the one direction controlmode <- state <- mcp <-
// cmd and the list of foreign packages.
func TestStructureImports(t *testing.T) {
	for _, f := range goFiles(t) {
		list, known := allowed[f.dir]
		if !known && strings.HasPrefix(f.dir, "integration/") {
			list, known = allowed["integration/"]
		}
		if !known {
			t.Errorf("%s: package %s has no entry in the import rule", f.path, f.dir)
			continue
		}
		for _, spec := range f.ast.Imports {
			path, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			ours := strings.HasPrefix(path, module+"/")
			if strings.HasPrefix(path, module+"/cmd/") ||
				strings.HasPrefix(path, module+"/integration") && !strings.HasPrefix(f.dir, "integration") {
				t.Errorf("%s: imports %s, which nobody may", f.path, path)
			}
			first, _, _ := strings.Cut(path, "/")
			if !f.test && (ours || strings.Contains(first, ".")) && !permitted(list, path) {
				t.Errorf("%s: imports %s, which package %s may not", f.path, path, f.dir)
			}
		}
	}
}

// TestStructurePackageDocs wants one package comment per package, of more than
// a line, in the form that go doc shows well.
func TestStructurePackageDocs(t *testing.T) {
	docs := map[string][]string{}
	code := map[string]bool{}
	for _, f := range goFiles(t) {
		if f.test {
			continue
		}
		code[f.dir] = true
		if slices.Contains(badNames, f.ast.Name.Name) {
			t.Errorf("%s: package %s: the name says nothing", f.path, f.ast.Name.Name)
		}
		if f.ast.Doc == nil {
			continue
		}
		docs[f.dir] = append(docs[f.dir], f.path)
		text, want := f.ast.Doc.Text(), "Package "+f.ast.Name.Name+" "
		if f.ast.Name.Name == "main" {
			want = "Command " + filepath.Base(f.dir) + " "
		}
		if !strings.HasPrefix(text, want) {
			t.Errorf("%s: the package comment starts %.30q, not %q", f.path, text, want)
		}
		if len(text) < 120 {
			t.Errorf("%s: the package comment says too little: %q", f.path, text)
		}
		if n := strings.Count(text, "\n"); n > 120 {
			t.Errorf("%s: the package comment has %d lines, more than 120", f.path, n)
		}
	}
	for dir := range code {
		if n := len(docs[dir]); n != 1 {
			t.Errorf("package %s has %d package comments, want exactly one: %q", dir, n, docs[dir])
		}
	}
}

// TestStructureFormat wants gofmt's form of every file; `make check` asks more.
func TestStructureFormat(t *testing.T) {
	for _, f := range goFiles(t) {
		want, err := format.Source(f.src)
		if err != nil {
			t.Errorf("%s: %v", f.path, err)
		} else if !bytes.Equal(want, f.src) {
			t.Errorf("%s: not in gofmt's form", f.path)
		}
	}
}

// TestStructurePrivatePaths keeps the path of the place it is written in out of
// the repository: a clone must work anywhere.
func TestStructurePrivatePaths(t *testing.T) {
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	bad := regexp.MustCompile(`(?:^|[^\w./-])` + regexp.QuoteMeta(root) + `(?:$|[^\w.-])`)
	for _, path := range repoFiles(t) {
		src, err := os.ReadFile(filepath.Join("..", path))
		if err != nil {
			t.Fatal(err)
		}
		if m := bad.Find(src); m != nil {
			t.Errorf("%s: names a path of one machine: %s", path, m)
		}
	}
}

// TestStructureTestCommand keeps the three places that say how tests are run in
// step: the README, the Makefile and what continuous integration runs.
func TestStructureTestCommand(t *testing.T) {
	const command = "go test -race -timeout 14m ./..."
	read := func(path string) string {
		b, err := os.ReadFile(filepath.Join("..", path))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	ci := strings.Split(strings.TrimSpace(read(".ci/run")), "\n")
	if got := ci[len(ci)-1]; got != command {
		t.Errorf(".ci/run ends with %q, not %q", got, command)
	}
	if !strings.Contains(read("Makefile"), "\n\t$(GO) "+strings.TrimPrefix(command, "go ")+"\n") {
		t.Errorf("the Makefile's test target does not run %q", command)
	}
	if !strings.Contains(read("README.md"), "\n"+command+"\n") && !strings.Contains(read("README.md"), "`"+command+"`") {
		t.Errorf("the README does not give %q", command)
	}
}
