//go:build unix

package main

import (
	"bytes"
	"cmp"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"slices"
)

// A schema is the code of a package with all breaks in it: each operator asks at
// run time whether it is the broken one. So the tests are compiled once, and not
// for every break, which would take most of the time.

// The broken operators, by the operator that is broken; those that gremlins makes.
var brokenOperators = map[token.Token][]token.Token{
	token.ADD: {token.SUB}, token.SUB: {token.ADD}, token.MUL: {token.QUO}, token.QUO: {token.MUL}, token.REM: {token.MUL},
	token.EQL: {token.NEQ}, token.NEQ: {token.EQL},
	token.LSS: {token.LEQ, token.GEQ}, token.LEQ: {token.LSS, token.GTR},
	token.GTR: {token.GEQ, token.LEQ}, token.GEQ: {token.GTR, token.LSS},
	token.INC: {token.DEC}, token.DEC: {token.INC},
}

// brokenVariable names the environment variable with the number of the break
// that a schema makes.
const brokenVariable = "FLOODGATE_MUTANT"

// schemaFile returns a file with what the operators of a schema call.
func schemaFile(pkg string) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, `package %s

import (
	mutantCmp "cmp"
	mutantOS "os"
	mutantStrconv "strconv"
)

var mutantActive, _ = mutantStrconv.Atoi(mutantOS.Getenv(%q))

func mutantOn(id int) bool { return mutantActive == id }

type mutantInteger interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~uintptr
}

type mutantNumber interface { mutantInteger | ~float32 | ~float64 }

func mutantNeg[T mutantNumber](id int, a T) T { if mutantActive == id { return +a }; return -a }
func mutantINC[T mutantNumber](id int, p *T) { if mutantActive == id { *p--; return }; *p++ }
func mutantDEC[T mutantNumber](id int, p *T) { if mutantActive == id { *p++; return }; *p-- }
`, pkg, brokenVariable)
	for _, op := range []token.Token{token.ADD, token.SUB, token.MUL, token.QUO, token.REM} {
		constraint := "mutantNumber"
		if op == token.REM {
			constraint = "mutantInteger"
		}
		fmt.Fprintf(&b, "func mutant%s[T %s](id int, a, b T) T { if mutantActive == id { return a %s b }; return a %s b }\n",
			functions[op], constraint, brokenOperators[op][0], op)
	}
	for _, op := range []token.Token{token.LSS, token.LEQ, token.GTR, token.GEQ} {
		fmt.Fprintf(&b, "func mutant%s[T mutantCmp.Ordered](id int, a, b T) bool { switch mutantActive { case id: return a %s b; case id+1: return a %s b }; return a %s b }\n",
			functions[op], brokenOperators[op][0], brokenOperators[op][1], op)
	}
	return b.Bytes()
}

var functions = map[token.Token]string{
	token.ADD: "ADD", token.SUB: "SUB", token.MUL: "MUL", token.QUO: "QUO", token.REM: "REM",
	token.LSS: "LSS", token.LEQ: "LEQ", token.GTR: "GTR", token.GEQ: "GEQ", token.INC: "INC", token.DEC: "DEC",
}

// broken is one break: where, and what the operator becomes.
type broken struct {
	position
	Operator string
}

// notViable is the number of a break that does not compile.
const notViable = -1

// rewriter makes a schema of one file.
type rewriter struct {
	info   *types.Info
	set    *token.FileSet
	name   string         // the file's path below the area
	ids    map[string]int // of the whole area; its length is the last number
	last   *int
	edits  []edit
	visits int
}

// edit puts a text in the place of length bytes. Of those at one offset, the
// ends of expressions come before the beginnings, and the inner ends first.
type edit struct {
	offset, length, order int
	text                  string
}

func (r *rewriter) rewrite(file *ast.File, src []byte) []byte {
	ast.Inspect(file, func(n ast.Node) bool {
		r.visits++
		switch n := n.(type) {
		case *ast.BinaryExpr:
			r.binary(n)
		case *ast.UnaryExpr:
			if t := r.info.Types[n]; n.Op == token.SUB && t.Value == nil && isNumber(t.Type) {
				r.wrap(n, fmt.Sprintf("mutantNeg(%d,", r.number(n.OpPos, token.ADD)), ")")
				r.edits[len(r.edits)-2].length = 1 // the minus
			}
		case *ast.IncDecStmt:
			if t := r.info.Types[n.X]; t.Addressable() && isNumber(t.Type) {
				id := r.number(n.TokPos, brokenOperators[n.Tok][0])
				r.edits = append(r.edits, edit{r.offset(n.X.Pos()), 0, r.visits, fmt.Sprintf("mutant%s(%d,&", functions[n.Tok], id)},
					edit{r.offset(n.TokPos), 2, 0, ")"})
			}
		}
		return true
	})
	slices.SortStableFunc(r.edits, func(a, b edit) int { return cmp.Or(cmp.Compare(a.offset, b.offset), cmp.Compare(a.order, b.order)) })
	var out []byte
	from := 0
	for _, e := range r.edits {
		out = append(append(out, src[from:e.offset]...), e.text...)
		from = e.offset + e.length
	}
	return append(out, src[from:]...)
}

func (r *rewriter) binary(n *ast.BinaryExpr) {
	t := r.info.Types[n]
	if brokenOperators[n.Op] == nil || t.Value != nil {
		return // a constant is not computed at run time
	}
	x, y := r.info.Types[n.X], r.info.Types[n.Y]
	switch n.Op {
	case token.EQL, token.NEQ:
		r.wrap(n, "((", fmt.Sprintf(")!=mutantOn(%d))", r.number(n.OpPos, brokenOperators[n.Op][0])))
		return
	case token.ADD:
		if b, ok := t.Type.Underlying().(*types.Basic); ok && b.Info()&types.IsString != 0 {
			r.ids[r.broken(n.OpPos, token.SUB).String()] = notViable
			return
		}
	}
	typed := x
	if x.Value != nil {
		typed = y
	}
	if b, ok := typed.Type.Underlying().(*types.Basic); !ok || b.Info()&types.IsUntyped != 0 || b.Info()&types.IsOrdered == 0 || hasShift(n.X) || hasShift(n.Y) {
		return
	}
	id := r.number(n.OpPos, brokenOperators[n.Op][0])
	for _, op := range brokenOperators[n.Op][1:] {
		r.number(n.OpPos, op)
	}
	r.wrap(n, fmt.Sprintf("mutant%s(%d,", functions[n.Op], id), ")")
	r.edits = append(r.edits, edit{r.offset(n.OpPos), len(n.Op.String()), 0, ","})
}

// wrap puts texts around an expression.
func (r *rewriter) wrap(n ast.Expr, before, after string) {
	r.edits = append(r.edits, edit{r.offset(n.Pos()), 0, r.visits, before}, edit{r.offset(n.End()), 0, -r.visits, after})
}

func (r *rewriter) offset(p token.Pos) int { return r.set.Position(p).Offset }

func (r *rewriter) broken(p token.Pos, op token.Token) broken {
	at := r.set.Position(p)
	return broken{position{r.name, at.Line, at.Column}, op.String()}
}

// number gives a break the next number.
func (r *rewriter) number(p token.Pos, op token.Token) int {
	*r.last++
	r.ids[r.broken(p, op).String()] = *r.last
	return *r.last
}

func isNumber(t types.Type) bool {
	b, ok := t.Underlying().(*types.Basic)
	return ok && b.Info()&(types.IsInteger|types.IsFloat) != 0 && b.Info()&types.IsUntyped == 0
}

// hasShift returns whether an expression has a shift: the type of 1 << n depends
// on what is around it.
func hasShift(e ast.Expr) (found bool) {
	ast.Inspect(e, func(n ast.Node) bool {
		b, ok := n.(*ast.BinaryExpr)
		found = found || ok && (b.Op == token.SHL || b.Op == token.SHR)
		return !found
	})
	return found
}

func (b broken) String() string {
	return fmt.Sprintf("%s %d %d %s", b.File, b.Line, b.Column, b.Operator)
}
