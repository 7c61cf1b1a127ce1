package rules

import (
	"go/ast"
	"go/token"
	"testing"
)

// TestNobodyLooksAtWhatALoopMayStillWrite: `call` hands a function to a loop and waits for it, but not beyond the loop's
// end: then the function may run still. Whoever has it write a variable looks whether it was done before he reads.
func TestNobodyLooksAtWhatALoopMayStillWrite(t *testing.T) {
	for _, p := range tree(t) {
		fset, files := parse(t, p)
		for _, f := range files {
			ast.Inspect(f, func(n ast.Node) bool {
				s, ok := n.(*ast.ExprStmt)
				if !ok {
					return true
				}
				if at := handedOver(s.X); at != nil && writes(at.Body) {
					t.Errorf("%v: what this call says is not looked at, and the function that it hands over writes a variable: if !x.call(...) { return }", fset.Position(s.Pos()))
				}
				return true
			})
		}
	}
}

// handedOver is the function that an expression hands to a method call or Call, nil if it is none of those.
func handedOver(x ast.Expr) *ast.FuncLit {
	c, ok := x.(*ast.CallExpr)
	if !ok || len(c.Args) != 1 {
		return nil
	}
	sel, ok := c.Fun.(*ast.SelectorExpr)
	if !ok || sel.Sel.Name != "call" && sel.Sel.Name != "Call" {
		return nil
	}
	f, _ := c.Args[0].(*ast.FuncLit)
	return f
}

// writes reports whether a function assigns to a variable that it has not declared.
func writes(body *ast.BlockStmt) (found bool) {
	own := map[string]bool{}
	ast.Inspect(body, func(n ast.Node) bool {
		a, ok := n.(*ast.AssignStmt)
		if !ok {
			return true
		}
		for _, l := range a.Lhs {
			if id, ok := l.(*ast.Ident); ok && id.Name != "_" {
				own[id.Name] = own[id.Name] || a.Tok == token.DEFINE
				found = found || a.Tok != token.DEFINE && !own[id.Name]
			}
		}
		return true
	})
	return found
}
