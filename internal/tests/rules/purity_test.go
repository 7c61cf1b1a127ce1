package rules

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// impure are the standard packages that bring a clock, a socket, a lock or a log into the core.
var impure = []string{"context", "log", "log/slog", "math/rand", "net", "net/http", "os", "os/exec", "sync", "sync/atomic", "syscall"}

// clock are the functions of package time that look at the clock or wait for it.
var clock = []string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "NewTimer", "NewTicker", "Tick"}

// parse reads the files of a package that are not tests.
func parse(t *testing.T, p listed) (*token.FileSet, []*ast.File) {
	t.Helper()
	fset := token.NewFileSet()
	var files []*ast.File
	for _, name := range p.GoFiles {
		f, err := parser.ParseFile(fset, filepath.Join(p.Dir, name), nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	return fset, files
}

func TestTheCoreHasNoClockSocketLockOrLog(t *testing.T) {
	for _, p := range tree(t) {
		if !anyUnder(p.name(), []string{"internal/core", "internal/boost/frame", "internal/openflow/ofp", "sid", "wire"}) {
			continue
		}
		fset, files := parse(t, p)
		for _, f := range files {
			for _, i := range f.Imports {
				if name, _ := strconv.Unquote(i.Path.Value); slices.Contains(impure, name) {
					t.Errorf("%s: imports %s", fset.Position(i.Pos()), name)
				}
			}
			ast.Inspect(f, func(n ast.Node) bool {
				if what := effect(n); what != "" {
					t.Errorf("%s: %s: time and packets are arguments here", fset.Position(n.Pos()), what)
				}
				return true
			})
		}
	}
}

// effect names what a node does that a pure engine may not, "" if nothing.
func effect(n ast.Node) string {
	switch n := n.(type) {
	case *ast.GoStmt:
		return "starts a goroutine"
	case *ast.SelectorExpr:
		if pkg, ok := n.X.(*ast.Ident); ok && pkg.Name == "time" && slices.Contains(clock, n.Sel.Name) {
			return "reads the clock by time." + n.Sel.Name
		}
	}
	return ""
}

func TestExportedNamesAreExplained(t *testing.T) {
	for _, p := range tree(t) {
		fset, files := parse(t, p)
		for _, f := range files {
			if ast.IsGenerated(f) {
				continue
			}
			for _, d := range f.Decls {
				for _, name := range unexplained(d) {
					t.Errorf("%s: %s has no comment", strings.TrimPrefix(fset.Position(d.Pos()).String(), root(t)+"/"), name)
				}
			}
		}
	}
}

// unexplained lists the exported names of a declaration that have no comment, neither their own nor
// their group's.
func unexplained(d ast.Decl) (names []string) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Name.IsExported() && d.Doc == nil && reachable(d) {
			names = append(names, d.Name.Name)
		}
	case *ast.GenDecl:
		for _, s := range d.Specs {
			if d.Doc == nil {
				names = append(names, bare(s)...)
			}
		}
	}
	return names
}

// reachable reports whether a function, or the type that it is a method of, is exported. String and
// Error say what they are by their names.
func reachable(f *ast.FuncDecl) bool {
	if f.Recv == nil {
		return true
	}
	of := f.Recv.List[0].Type
	if star, ok := of.(*ast.StarExpr); ok {
		of = star.X
	}
	if generic, ok := of.(*ast.IndexExpr); ok {
		of = generic.X
	}
	name, ok := of.(*ast.Ident)
	return ok && name.IsExported() && !slices.Contains([]string{"String", "Error", "Unwrap"}, f.Name.Name)
}

func bare(s ast.Spec) (names []string) {
	switch s := s.(type) {
	case *ast.TypeSpec:
		if s.Name.IsExported() && s.Doc == nil && s.Comment == nil {
			names = append(names, s.Name.Name)
		}
	case *ast.ValueSpec:
		for _, n := range s.Names {
			if n.IsExported() && s.Doc == nil && s.Comment == nil {
				names = append(names, n.Name)
			}
		}
	}
	return names
}
