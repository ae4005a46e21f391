package file

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/policy/internal/expression"
	"github.com/floodgate-go/floodgate/policy/internal/words"
)

// kind is a kind of values: how they are read, and what they look like. read
// returns false if it has noted a problem.
type kind[V any] struct {
	shape
	read func(r *reader, v value) (V, bool)
}

// text is text that is not empty; want is for messages.
func text(want string) kind[string] {
	return kind[string]{always("text", object{{"type", "string"}, {"minLength", 1}}), func(r *reader, v value) (string, bool) {
		return r.text(v, want)
	}}
}

// checked is text for which check returns no problem.
func checked(want string, check func(text string) (problem, hint string)) kind[string] {
	k := text(want)
	return kind[string]{k.shape, func(r *reader, v value) (string, bool) {
		s, ok := k.read(r, v)
		if !ok {
			return "", false
		}
		if problem, hint := check(s); problem != "" {
			r.bad(v, fmt.Sprintf("%q: %s", words.Shown(s), problem), hint)
			return "", false
		}
		return s, true
	}}
}

// name is a name of the kind that is part of the names of counters and stands in
// headers.
func name() kind[string] {
	k := checked("a name", func(s string) (problem, hint string) {
		if len(s) > maxName || strings.IndexFunc(s, func(c rune) bool {
			return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '_' && c != '.' && c != '-'
		}) >= 0 {
			return "want 1 to 64 of the characters A-Z a-z 0-9 _ . -", ""
		}
		return "", ""
	})
	k.shape = shape{"a name: 1 to 64 of the characters `A-Z a-z 0-9 _ . -`", func(d *definitions) object {
		return d.ref("name", func() object { return object{{"type", "string"}, {"pattern", "^[A-Za-z0-9_.-]{1,64}$"}} })
	}, nil}
	return k
}

// whole is whole numbers.
func whole[N int | int64](least, most int64) kind[N] {
	return kind[N]{always(fmt.Sprintf("a whole number from %d to %d", least, most), object{{"type", "integer"}, {"minimum", least}, {"maximum", most}}),
		func(r *reader, v value) (N, bool) {
			n, ok := r.integer(v, least, most)
			return N(n), ok
		}}
}

// boolean is true and false.
func boolean() kind[bool] {
	return kind[bool]{always("`true` or `false`", object{{"type", "boolean"}}), func(r *reader, v value) (bool, bool) { return r.boolean(v) }}
}

// word is one of the words of a choice.
type word[V any] struct {
	text  string
	means V
}

// choice is one of some words.
func choice[V any](all ...word[V]) kind[V] {
	texts := make([]string, len(all))
	for i, w := range all {
		texts[i] = w.text
	}
	return kind[V]{always("`"+strings.Join(texts, "`, `")+"`", object{{"enum", texts}}), func(r *reader, v value) (means V, ok bool) {
		text, ok := r.choice(v, texts...)
		if ok {
			means = all[slices.Index(texts, text)].means
		}
		return means, ok
	}}
}

// list is a list of at least one and at most so many values of a kind. If key is
// not nil, no two of them may have the same key.
func list[V any](of kind[V], most int, want string, key func(V) string) kind[[]V] {
	return kind[[]V]{listOf(of.shape, most, key != nil), func(r *reader, v value) (all []V, ok bool) {
		seen, before := map[string]bool{}, len(r.errs)
		for _, item := range r.list(v, most, want) {
			got, ok := of.read(r, item)
			if !ok {
				continue
			}
			if key != nil {
				if seen[key(got)] {
					r.bad(item, key(got)+": stands twice", "")
				}
				seen[key(got)] = true
			}
			all = append(all, got)
		}
		return all, len(r.errs) == before
	}}
}

// duration is a length of time as limits text writes it: 500ms, 6s, 2h.
func duration(want string) kind[time.Duration] { return length(want, false) }

// length is a duration or, if months is true, the word month.
func length(want string, months bool) kind[time.Duration] {
	return kind[time.Duration]{shape{"a length of time such as `500ms`, `6s`, `2h` or `1d`", func(d *definitions) object {
		return d.ref("window", func() object {
			return object{{"description", "A length of time: 500ms, 6s, 2h, 1d."}, {"type", "string"}, {"pattern", "^(0*[1-9][0-9]*)?[A-Za-z]+$"}}
		})
	}, nil}, func(r *reader, v value) (time.Duration, bool) {
		text, ok := r.text(v, want)
		if !ok {
			return 0, false
		}
		if !strings.ContainsAny(text, " ,/\t\n") {
			if limits, err := core.ParseLimits("1/" + text); err == nil && len(limits) == 1 {
				switch isMonth := limits[0].Zone != nil; {
				case !isMonth:
					return limits[0].Window, true
				case months:
					return month, true
				}
			}
		}
		r.bad(v, fmt.Sprintf("%q: want %s", words.Shown(text), want), "units are ms, s, m, h, d and w; 366 days at most")
		return 0, false
	}}
}

// compiled is an expression; may is asked about the type of its values.
func compiled(want string, may func(e *expression.Expression) bool) kind[*expression.Expression] {
	return kind[*expression.Expression]{always("an expression", object{{"type", "string"}, {"minLength", 1}, {"maxLength", expression.MaxBytes}}), func(r *reader, v value) (*expression.Expression, bool) {
		text, ok := r.text(v, want)
		if !ok {
			return nil, false
		}
		e, bad := expression.Compile(text, r.spec.Sources)
		if bad != nil {
			opened, _ := r.open(v)
			lines, columns := bad.Line, bad.Column
			_, block := opened.node.(*ast.LiteralNode)
			switch {
			case block: // its text begins in the line after | or >
				lines, columns = lines+1, 0
			case lines == 0 && !strings.Contains(text, "\n"):
				columns += quoted(opened)
			default:
				columns = 0
			}
			r.badAt(opened, lines, columns, bad.Problem, bad.Hint)
			return nil, false
		}
		if may != nil && !may(e) {
			r.bad(v, fmt.Sprintf("%q is %s: want %s", words.Shorten(text), e.Kind(), want), "")
			return nil, false
		}
		return e, true
	}}
}
