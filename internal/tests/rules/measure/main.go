// Command measure counts the house: how large it is, how its parts are shaped, how much is said where. It prints the
// table that a review is held against, so that two of them can be compared: go run ./internal/tests/rules/measure.
package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strings"

	"scaffold.dev/scaffold/internal/tests/rules/metaphors"
)

func main() {
	files, err := tracked()
	if err == nil {
		err = run(files)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "measure:", err)
		os.Exit(1)
	}
}

// tracked are the Go files of the repository that people write.
func tracked() (files []string, err error) {
	out, err := exec.Command("git", "ls-files", "*.go").Output()
	if err != nil {
		return nil, fmt.Errorf("git ls-files: %w (run it in the repository)", err)
	}
	for _, f := range strings.Fields(string(out)) {
		if base := path.Base(f); !strings.HasSuffix(base, ".pb.go") && !strings.HasSuffix(base, ".connect.go") && !generated.MatchString(base) {
			files = append(files, f)
		}
	}
	return files, nil
}

var generated = regexp.MustCompile(`_bpfe[bl]\.go$`)

// A house is what is counted.
type house struct {
	code, test, comments, inside, wide, lines int
	functions, files                          []int
	exported, documented, metaphors           int
	methods, packages                         map[string]int
}

func run(files []string) error {
	h := house{methods: map[string]int{}, packages: map[string]int{}}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			return err
		}
		fset := token.NewFileSet()
		tree, err := parser.ParseFile(fset, f, text, parser.ParseComments)
		if err != nil {
			return err
		}
		h.file(f, string(text), fset, tree)
	}
	h.print()
	return nil
}

// file counts lines that are neither empty nor comments as code.
func (h *house) file(name, text string, fset *token.FileSet, tree *ast.File) {
	said := map[int]bool{} // lines that hold nothing but a comment
	all := strings.Split(text, "\n")
	for _, g := range tree.Comments {
		for line := fset.Position(g.Pos()).Line; line <= fset.Position(g.End()).Line; line++ {
			if t := strings.TrimSpace(all[line-1]); strings.HasPrefix(t, "//") || strings.HasPrefix(t, "/*") || line > fset.Position(g.Pos()).Line {
				said[line] = true
			}
		}
	}
	code := 0
	for i, line := range all {
		if strings.TrimSpace(line) != "" && !said[i+1] {
			code++
		}
	}
	if !metaphors.Exempt(name) {
		h.metaphors += len(metaphors.In(text))
	}
	if strings.HasSuffix(name, "_test.go") {
		h.test += code
		return
	}
	h.code += code
	h.comments += len(said)
	h.packages[path.Dir(name)] += code
	h.files = append(h.files, len(all)-1)
	for _, line := range all {
		h.lines++
		if len(strings.ReplaceAll(line, "\t", "    ")) > 120 {
			h.wide++
		}
	}
	h.declarations(name, fset, tree)
}

func (h *house) declarations(name string, fset *token.FileSet, tree *ast.File) {
	for _, d := range tree.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			h.function(path.Dir(name), fset, tree, d)
		case *ast.GenDecl:
			for _, s := range d.Specs {
				if t, ok := s.(*ast.TypeSpec); ok && t.Name.IsExported() {
					h.name(d.Doc != nil || t.Doc != nil)
				}
			}
		}
	}
}

func (h *house) name(documented bool) {
	h.exported++
	if documented {
		h.documented++
	}
}

func (h *house) function(pkg string, fset *token.FileSet, tree *ast.File, d *ast.FuncDecl) {
	if d.Name.IsExported() {
		h.name(d.Doc != nil)
	}
	if d.Recv != nil && len(d.Recv.List) == 1 {
		h.methods[pkg+"."+receiver(d.Recv.List[0].Type)]++
	}
	if d.Body == nil {
		return
	}
	h.functions = append(h.functions, fset.Position(d.End()).Line-fset.Position(d.Pos()).Line+1)
	for _, g := range tree.Comments {
		if g.Pos() > d.Body.Pos() && g.End() < d.Body.End() {
			h.inside += len(g.List)
		}
	}
}

func receiver(e ast.Expr) string {
	switch t := e.(type) {
	case *ast.StarExpr:
		return receiver(t.X)
	case *ast.IndexExpr:
		return receiver(t.X)
	case *ast.IndexListExpr:
		return receiver(t.X)
	case *ast.Ident:
		return t.Name
	}
	return "?"
}

func (h *house) print() {
	row := func(what, format string, a ...any) { fmt.Printf("%-44s %s\n", what, fmt.Sprintf(format, a...)) }
	row("Go lines, code / tests", "%d / %d", h.code, h.test)
	row("tests : code", "%.2f", float64(h.test)/float64(h.code))
	row("lines that are comments, of code and comments", "%.1f %%", 100*float64(h.comments)/float64(h.code+h.comments))
	row("comments inside functions, per 100 of code", "%.2f (%d)", 100*float64(h.inside)/float64(h.code), h.inside)
	row("lines over 120 columns", "%.1f %%", 100*float64(h.wide)/float64(h.lines))
	row("functions p50 / p90 / over 80 lines", "%d / %d / %d", quantile(h.functions, 50), quantile(h.functions, 90), over(h.functions, 80))
	row("files p50 / p90 / longest", "%d / %d / %d", quantile(h.files, 50), quantile(h.files, 90), quantile(h.files, 100))
	row("exported names documented", "%.1f %%", 100*float64(h.documented)/float64(h.exported))
	row("private metaphors", "%d", h.metaphors)
	rooms := map[string]bool{}
	for pkg := range h.packages {
		if rest, ok := strings.CutPrefix(pkg, "internal/"); ok {
			rooms[strings.Split(rest, "/")[0]] = true
		}
	}
	row("entries of internal/", "%d", len(rooms))
	row("types with most methods", "%s", most(h.methods))
	row("types with more than 40 methods", "%d", count(h.methods, 40))
	row("largest packages", "%s", most(h.packages))
	row("packages over 6,000 lines", "%d", count(h.packages, 6000))
}

func quantile(list []int, percent int) int {
	slices.Sort(list)
	return list[(len(list)-1)*percent/100]
}

func over(list []int, limit int) (n int) {
	for _, x := range list {
		if x > limit {
			n++
		}
	}
	return n
}

func count(of map[string]int, limit int) (n int) {
	for _, x := range of {
		if x > limit {
			n++
		}
	}
	return n
}

// most are the five largest.
func most(of map[string]int) string {
	names := make([]string, 0, len(of))
	for name := range of {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int { return of[b] - of[a] })
	var list []string
	for _, name := range names[:min(5, len(names))] {
		list = append(list, fmt.Sprintf("%s %d", name, of[name]))
	}
	return strings.Join(list, ", ")
}
