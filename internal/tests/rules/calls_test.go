package rules

import (
	"go/ast"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// dialects are what a package uses that answers, or is answered, by something else than the schemas of `internal/api`:
// routes of its own, descriptors that go to another process, lines to a child.
var dialects = []string{"http.NewServeMux", "http.Server", "http.Serve", "http.ListenAndServe", "http.HandleFunc", "http.Handle", "unix.UnixRights", "unix.ParseUnixRights", "syscall.UnixRights", "syscall.ParseUnixRights"}

// pipe is the method by which lines go to a child, whatever the command is called.
const pipe = "StdinPipe"

// plumbing is what all servers are made of: it carries what is asked and asks nothing itself.
var plumbing = []string{"internal/api", "internal/tests"}

// TestWaysToCallArePutOnRecord: whoever finds a way for parts to speak to each other finds it in the table of
// docs/architecture.md, with its reason.
func TestWaysToCallArePutOnRecord(t *testing.T) {
	_, section, _ := strings.Cut(read(t, "docs/architecture.md"), "\n## How parts call each other\n")
	section, _, _ = strings.Cut(section, "\n## ")
	if section == "" {
		t.Fatal(`docs/architecture.md has no section "How parts call each other"`)
	}
	named := map[string]bool{}
	for _, m := range regexp.MustCompile("`([a-z0-9/]+)`").FindAllStringSubmatch(section, -1) {
		named[m[1]] = true
	}
	for _, p := range tree(t) {
		if anyUnder(p.name(), plumbing) || generated(t, p) {
			continue
		}
		if uses := dialect(t, p); len(uses) > 0 && !named[p.name()] {
			t.Errorf("%s uses %v, and docs/architecture.md, \"How parts call each other\", does not say why: make it a call of a schema (internal/api/v1), or put it there", p.name(), uses)
		}
	}
	for name := range named {
		if strings.Contains(name, "/") && !slices.ContainsFunc(tree(t), func(p listed) bool { return under(p.name(), name) }) && strings.HasPrefix(name, "internal/") {
			t.Errorf("docs/architecture.md, \"How parts call each other\", names %s, which is no package", name)
		}
	}
}

// dialect is which of the dialects a package uses.
func dialect(t *testing.T, p listed) (uses []string) {
	t.Helper()
	_, files := parse(t, p)
	for _, f := range files {
		ast.Inspect(f, func(n ast.Node) bool {
			s, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			what := s.Sel.Name
			if x, ok := s.X.(*ast.Ident); ok && what != pipe {
				what = x.Name + "." + what
			}
			if (what == pipe || slices.Contains(dialects, what)) && !slices.Contains(uses, what) {
				uses = append(uses, what)
			}
			return true
		})
	}
	return uses
}

// schemas that are not the API's: only those who are listed may ask by them, or answer.
var schemas = map[string][]string{
	"internal/lab/emud/v1": {"internal/lab/emud"},                      // the engine's socket is its user's alone
	"internal/lab/v1":      {"internal/lab/labapi", "internal/lab/v1"}, // the other ends are in Python and JavaScript
}

func TestSchemasHaveTwoEnds(t *testing.T) {
	for _, p := range tree(t) {
		for _, imported := range p.Imports {
			inside, _ := relative(imported)
			for schema, ends := range schemas {
				if under(inside, schema) && !anyUnder(p.name(), ends) {
					t.Errorf("%s imports %s: only %v may", p.name(), inside, ends)
				}
			}
		}
	}
}
