package policy

import (
	"fmt"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// field says how a field of a mapping is read.
type field struct {
	name string
	read func(v value)
}

// mapping reads a mapping of known fields and returns which were there.
func (r *reader) mapping(v value, want string, fields ...field) (given map[string]value) {
	pairs, ok := r.pairs(v, want)
	if !ok {
		return nil
	}
	given = map[string]value{}
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.name
	}
	for _, p := range pairs {
		known := false
		for _, f := range fields {
			if f.name == p.name {
				known = true
				given[p.name] = p.value
				f.read(p.value)
			}
		}
		if !known {
			hint := nearest(p.name, names)
			if hint == "" {
				hint = "the fields here are " + strings.Join(names, ", ")
			}
			if foreign, found := foreignFields[p.name]; found {
				hint = foreign
			}
			r.bad(value{p.key, p.value.path}, "there is no such field", hint)
		}
	}
	return given
}

func has(given map[string]value, name string) bool {
	_, found := given[name]
	return found
}

// foreignFields are what other software calls what is here, too.
var foreignFields = map[string]string{
	"keySelector":   "write key",
	"rateLimits":    "write limits",
	"exposeHeaders": "write headers: x-milliseconds",
	"clusterizable": "write counting: shared, or counting: local",
}

// pair is a field of a mapping.
type pair struct {
	name  string
	key   ast.Node
	value value
}

// pairs returns the fields of a mapping, each name once.
func (r *reader) pairs(v value, want string) ([]pair, bool) {
	v, ok := r.open(v)
	if !ok {
		return nil, false
	}
	var nodes []*ast.MappingValueNode
	switch n := v.node.(type) {
	case *ast.MappingNode:
		nodes = n.Values
	case *ast.MappingValueNode:
		nodes = []*ast.MappingValueNode{n}
	default:
		hint := ""
		if kind(v.node) == "nothing" {
			hint = "is anything missing below it?"
		}
		r.bad(v, kind(v.node)+": want "+want, hint)
		return nil, false
	}
	depth := strings.Count(v.path, ".") + strings.Count(v.path, "[")
	if depth > maxDepth {
		r.bad(v, "is nested too deeply", "")
		return nil, false
	}
	var pairs []pair
	lines := map[string]int{}
	for _, n := range nodes {
		name := kindText(n.Key)
		at := value{n.Key, v.path}
		if name == "" {
			r.bad(at, shorten(n.Key.String())+": is not the name of a field", "")
			continue
		}
		p := pair{name, n.Key, value{n.Value, shorten(name)}}
		if v.path != "" {
			p.value.path = v.path + "." + shorten(name)
		}
		if line, twice := lines[name]; twice {
			r.bad(value{n.Key, p.value.path}, fmt.Sprintf("stands twice, in line %d too", line), "")
			continue
		}
		lines[name] = n.Key.GetToken().Position.Line
		if isNull(n.Value) {
			p.value.node = &ast.NullNode{BaseNode: &ast.BaseNode{}, Token: n.Key.GetToken()}
		}
		pairs = append(pairs, p)
	}
	return pairs, true
}

func isNull(n ast.Node) bool {
	_, null := n.(*ast.NullNode)
	return n == nil || null
}
