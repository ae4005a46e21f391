package mulesoft

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"

	"github.com/floodgate-go/floodgate/internal/boundedyaml"
)

// MaxBytes is the size of the largest file that [Import] reads, in bytes. It
// bounds the time that reading a file takes.
const MaxBytes = 64 << 10

// mapping is a YAML mapping.
type mapping = map[string]any

// found is what a file has of policies.
type found struct {
	policies []source
	redis    mapping // of the shared storage; nil: none
	others   []string
}

// source is a policy of a file.
type source struct {
	kind   string // policyRef.name
	called string // a name for it; may be ""
	api    string // which it is for; "" if the file does not say
	config mapping
	rules  bool // for parts of the API only
}

// read finds the policies of a file, in all of its documents.
func read(file []byte) (f found, err error) {
	if len(file) > MaxBytes {
		return f, fmt.Errorf("has %d bytes: at most %d", len(file), MaxBytes)
	}
	parsed, err := boundedyaml.Parse(file)
	if err != nil {
		return f, notYAML(err)
	}
	if err := plain(parsed); err != nil {
		return f, err
	}
	for _, d := range parsed.Docs {
		doc, err := decoded(d)
		if err != nil {
			return f, notYAML(err)
		}
		f.document(doc)
	}
	return f, nil
}

// decoded returns the value of a document.
func decoded(d *ast.DocumentNode) (doc any, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("is no YAML: the decoder fails: %v", p)
		}
	}()
	if d.Body == nil {
		return nil, nil
	}
	err = yaml.NodeToValue(d.Body, &doc)
	return doc, err
}

// plain returns an error for aliases: a few lines of them can mean millions of
// values.
func plain(file *ast.File) error {
	v := aliases{}
	for _, d := range file.Docs {
		if d.Body != nil {
			ast.Walk(&v, d.Body)
		}
	}
	if v.line > 0 {
		return fmt.Errorf("line %d: aliases are not read: write the value itself", v.line)
	}
	return nil
}

type aliases struct{ line int }

// Visit implements [ast.Visitor].
func (a *aliases) Visit(n ast.Node) ast.Visitor {
	if n.Type() == ast.AliasType || n.Type() == ast.AnchorType {
		a.line = n.GetToken().Position.Line
	}
	return a
}

// notYAML returns the error for a file that the parser or its bounds refuse.
func notYAML(err error) error {
	message, line, _ := boundedyaml.Message(err)
	if line == 0 {
		return errors.New(message)
	}
	return fmt.Errorf("line %d: %s", line, message)
}

// document takes a document: a resource of the gateway, a policy, or a list of
// policies.
func (f *found) document(doc any) {
	switch doc := doc.(type) {
	case []any:
		for _, item := range doc {
			f.document(item)
		}
	case mapping:
		spec, isResource := doc["spec"].(mapping)
		metadata, _ := doc["metadata"].(mapping)
		called, _ := metadata["name"].(string)
		switch {
		case !isResource && doc["policyRef"] != nil:
			f.policy(doc, "", "")
		case !isResource && doc["policies"] != nil:
			f.list(doc["policies"], "")
		case spec["policyRef"] != nil:
			target, _ := spec["targetRef"].(mapping)
			api, _ := target["name"].(string)
			f.policy(spec, called, api)
		case spec["policies"] != nil:
			f.list(spec["policies"], called)
		case spec["sharedStorage"] != nil:
			storage, _ := spec["sharedStorage"].(mapping)
			if redis, ok := storage["redis"].(mapping); ok {
				f.redis = redis
			} else {
				f.others = append(f.others, "spec.sharedStorage")
			}
		default:
			kind, _ := doc["kind"].(string)
			f.others = append(f.others, strings.TrimSpace("a document without policies "+kind))
		}
	case nil:
	default:
		f.others = append(f.others, "a document that is not a mapping")
	}
}

func (f *found) list(all any, api string) {
	items, ok := all.([]any)
	if !ok {
		f.others = append(f.others, "policies, which is not a list")
	}
	for _, item := range items {
		if p, ok := item.(mapping); ok && p["policyRef"] != nil {
			f.policy(p, "", api)
		} else {
			f.others = append(f.others, "an entry of policies without policyRef")
		}
	}
}

func (f *found) policy(p mapping, called, api string) {
	s := source{called: called, api: api, rules: p["rules"] != nil}
	if ref, ok := p["policyRef"].(mapping); ok {
		s.kind, _ = ref["name"].(string)
	}
	s.config, _ = p["config"].(mapping)
	f.policies = append(f.policies, s)
}

// rest returns the fields of a mapping that are not among those that are known.
func rest(m mapping, known ...string) []string {
	var all []string
	for _, field := range slices.Sorted(maps.Keys(m)) {
		if !slices.Contains(known, field) {
			all = append(all, field)
		}
	}
	return all
}
