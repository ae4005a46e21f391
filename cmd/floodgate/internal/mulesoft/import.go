// Package mulesoft translates rate limiting policies of MuleSoft into policy files.
//
// It reads the YAML of Flex Gateway in local mode: a policy, a list of policies, a
// PolicyBinding, or an ApiInstance with policies. It knows the fields that MuleSoft's
// documentation shows for rate-limiting-flex and spike-control-flex, and a keySelector
// that is the method, the path, the client's address, a header or a query parameter.
// Anything else is an error with its place, and nothing is written.
package mulesoft

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/boundedyaml"
	"github.com/floodgate-go/floodgate/policy"
)

// MaxBytes is the size of the largest file that [Import] reads. It bounds the time
// that the YAML parser takes.
const MaxBytes = 64 << 10

// Import returns a policy file with the policies of a MuleSoft file. name is the
// file's name in errors. The error has all mistakes: see [policy.Errors].
func Import(name string, text []byte) ([]byte, error) {
	if len(text) > MaxBytes {
		return nil, &policy.Error{File: name, Problem: fmt.Sprintf("has more than %d bytes", MaxBytes)}
	}
	parsed, err := boundedyaml.Parse(text)
	if err != nil {
		message, line, column := boundedyaml.Message(err)
		return nil, &policy.Error{File: name, Line: line, Column: column, Problem: message}
	}
	t := &translation{file: name, names: map[string]bool{}}
	for _, d := range parsed.Docs {
		if d.Body != nil && d.Body.Type() != ast.NullType {
			t.document(d.Body, "")
		}
	}
	if len(t.errs) == 0 && t.policies.Len() == 0 {
		t.errs = append(t.errs, &policy.Error{File: name, Problem: "has no policies", Hint: "want policyRef: {name: rate-limiting-flex} and config"})
	}
	if len(t.errs) > 0 {
		return nil, errors.Join(t.errs...)
	}
	head := "# Written by floodgate import.\n"
	if t.clusterizable {
		head += "# clusterizable: add the field store. Without it, each process counts by itself.\n"
	}
	return []byte(head + "policies:\n" + t.policies.String()), nil
}

// translation collects the policies of one import, and its errors.
type translation struct {
	file          string
	api           ast.Node // the name in the first targetRef
	names         map[string]bool
	clusterizable bool // whether a policy counts for all replicas together
	policies      strings.Builder
	errs          []error
}

// wrong adds an error at the place of a node.
func (t *translation) wrong(at ast.Node, field, problem, hint string) {
	e := &policy.Error{File: t.file, Field: field, Problem: problem, Hint: hint}
	if m, ok := at.(*ast.MappingNode); ok && !m.IsFlowStyle && len(m.Values) > 0 {
		at = m.Values[0].Key
	}
	if token := at.GetToken(); token != nil && token.Position != nil {
		e.Line, e.Column = token.Position.Line, token.Position.Column
	}
	t.errs = append(t.errs, e)
}

// mapping returns the fields of the mapping n. If n is not a mapping, it adds an error and
// returns nil. It adds an error for a field that is not known, unless known is empty.
func (t *translation) mapping(n ast.Node, path string, known ...string) map[string]ast.Node {
	m, ok := n.(*ast.MappingNode)
	if !ok {
		t.wrong(n, path, "want a mapping", "")
		return nil
	}
	fields := map[string]ast.Node{}
	for _, v := range m.Values {
		name := v.Key.GetToken().Value
		if len(known) > 0 && !slices.Contains(known, name) {
			t.wrong(v.Key, join(path, name), "is not translated", "known are "+strings.Join(known, ", "))
		}
		fields[name] = v.Value
	}
	return fields
}

func join(path, name string) string { return strings.TrimPrefix(path+"."+name, ".") }

// list calls each with the entries of a list.
func (t *translation) list(n ast.Node, path string, each func(n ast.Node, path string)) {
	all, ok := n.(*ast.SequenceNode)
	if !ok || len(all.Values) == 0 {
		t.wrong(n, path, "want a list with one entry or more", "")
		return
	}
	for i, v := range all.Values {
		each(v, fmt.Sprintf("%s[%d]", path, i))
	}
}

// document translates a policy, a list of policies or a resource that has some.
func (t *translation) document(n ast.Node, path string) {
	if n.Type() == ast.SequenceType {
		t.list(n, path, t.document)
		return
	}
	body := t.mapping(n, path)
	name := ""
	if metadata := body["metadata"]; metadata != nil {
		if n, ok := t.mapping(metadata, join(path, "metadata"))["name"].(*ast.StringNode); ok {
			name = n.Value
		}
	}
	if spec := body["spec"]; spec != nil {
		n, path = spec, join(path, "spec")
		body = t.mapping(spec, path)
	}
	switch {
	case body["policyRef"] != nil:
		t.policy(n, path, name)
	case body["policies"] != nil:
		t.list(body["policies"], join(path, "policies"), func(n ast.Node, path string) { t.policy(n, path, "") })
	case body != nil:
		t.wrong(n, path, "has neither policyRef nor policies", "import reads rate limiting policies only: remove this part")
	}
}

// policy translates a policy.
func (t *translation) policy(n ast.Node, path, name string) {
	before := len(t.errs)
	fields := t.mapping(n, path, "policyRef", "config", "targetRef", "order")
	if fields == nil {
		return
	}
	if fields["policyRef"] == nil || fields["config"] == nil {
		t.wrong(n, path, "policyRef or config is missing", "want policyRef: {name: rate-limiting-flex} and config")
		return
	}
	t.target(fields["targetRef"], join(path, "targetRef"))
	ref := t.mapping(fields["policyRef"], join(path, "policyRef"))
	if ref == nil {
		return
	}
	kind, config := "", join(path, "config")
	if name := ref["name"]; name != nil {
		kind = name.GetToken().Value
	}
	var body string
	switch kind {
	case "rate-limiting-flex":
		body, name = t.rateLimiting(fields["config"], config), cmp.Or(name, "rate-limit")
	case "spike-control-flex":
		body, name = t.spikeControl(fields["config"], config), cmp.Or(name, "spike-control")
	default:
		t.wrong(fields["policyRef"], join(path, "policyRef.name"), fmt.Sprintf("%q is not translated", kind), "known are rate-limiting-flex and spike-control-flex")
	}
	if len(t.errs) > before {
		return
	}
	text := "  - name: \"" + t.unique(name) + "\"\n" + body
	set, err := policy.Parse("", []byte("policies:\n"+text), policy.Log(slog.New(slog.DiscardHandler)))
	if err == nil {
		err = set.Close()
	}
	for _, e := range policy.Errors(err) { // the policy does not load by itself
		field := strings.TrimPrefix(strings.TrimPrefix(e.Field, "policies[0]"), ".")
		t.wrong(n, config, strings.TrimPrefix(field+": "+e.Problem, ": "), e.Hint)
	}
	t.policies.WriteString(text)
}

// target adds an error if a policy is for another API than the first one. In a policy file,
// both would apply to all requests.
func (t *translation) target(n ast.Node, path string) {
	if n == nil {
		return
	}
	name := t.mapping(n, path)["name"]
	if name != nil && t.api != nil && name.String() != t.api.String() {
		t.wrong(name, path+".name", "is another API than "+t.api.String(), "import the policies of one API at a time")
	} else if t.api == nil {
		t.api = name
	}
}

// unique returns a name that a policy may have and that no other one has.
func (t *translation) unique(name string) string {
	const longest = 40
	name = regexp.MustCompile(`[^A-Za-z0-9_.-]`).ReplaceAllString(name, "-")
	name = name[:min(len(name), longest)]
	for base, n := name, 2; t.names[name]; n++ {
		name = fmt.Sprintf("%s-%d", base, n)
	}
	t.names[name] = true
	return name
}

// selectors matches the key selectors that a policy file reads as they are.
var selectors = regexp.MustCompile(`^#\[\s*attributes\.(method|requestPath|remoteAddress|(headers|queryParams?)\[('[\w.-]+'|"[\w.-]+")\])\s*\]$`)

func (t *translation) rateLimiting(n ast.Node, path string) (body string) {
	fields := t.mapping(n, path, "rateLimits", "keySelector", "exposeHeaders", "clusterizable")
	if fields == nil {
		return ""
	}
	if s, ok := fields["keySelector"].(*ast.StringNode); ok && selectors.MatchString(s.Value) {
		body += "    key: \"" + strings.ReplaceAll(s.Value, `"`, `'`) + "\"\n    missing: own-bucket\n"
	} else if fields["keySelector"] != nil && (!ok || s.Value != "") {
		t.wrong(fields["keySelector"], join(path, "keySelector"), "is not translated",
			"known are attributes.method, attributes.requestPath, attributes.remoteAddress, attributes.headers['x'] and attributes.queryParams['x'], in #[ ]")
	}
	body += "    limits:\n"
	if fields["rateLimits"] == nil {
		t.wrong(n, join(path, "rateLimits"), "is missing", "want a list of {maximumRequests: 3, timePeriodInMilliseconds: 10000}")
	} else {
		t.list(fields["rateLimits"], join(path, "rateLimits"), func(n ast.Node, path string) {
			if limit := t.mapping(n, path, "maximumRequests", "timePeriodInMilliseconds"); limit != nil {
				body += fmt.Sprintf("      - {maximumRequests: %d, timePeriodInMilliseconds: %d}\n", t.whole(n, limit, path, "maximumRequests"), t.whole(n, limit, path, "timePeriodInMilliseconds"))
			}
		})
	}
	body += t.headers(fields, path)
	if !t.boolean(fields, path, "clusterizable", true) {
		return body + "    counting: local\n"
	}
	t.clusterizable = true
	return body
}

func (t *translation) spikeControl(n ast.Node, path string) string {
	fields := t.mapping(n, path, "maximumRequests", "timePeriodInMilliseconds", "delayTimeInMillis", "delayAttempts", "exposeHeaders")
	if fields == nil {
		return ""
	}
	algorithm := core.SlidingLog
	quota := t.whole(n, fields, path, "maximumRequests")
	if quota > core.MaxLogQuota {
		algorithm = core.SlidingWindow
	}
	body := fmt.Sprintf("    limits: %d/%dms %v\n", quota, t.whole(n, fields, path, "timePeriodInMilliseconds"), algorithm)
	if fields["delayAttempts"] != nil {
		attempts, delay := t.whole(n, fields, path, "delayAttempts"), t.whole(n, fields, path, "delayTimeInMillis")
		if wait := float64(attempts) * float64(delay); wait > 0 {
			body += fmt.Sprintf("    wait: %.0fms\n", wait)
		}
	}
	return body + t.headers(fields, path) + "    counting: local\n"
}

func (t *translation) headers(fields map[string]ast.Node, path string) string {
	if t.boolean(fields, path, "exposeHeaders", false) {
		return "    headers: x-milliseconds\n"
	}
	return ""
}

// whole reads a whole number of the mapping n.
func (t *translation) whole(n ast.Node, fields map[string]ast.Node, path, name string) uint64 {
	switch v := fields[name].(type) {
	case nil:
		t.wrong(n, join(path, name), "is missing", "")
	case *ast.IntegerNode:
		if n, ok := v.Value.(uint64); ok { // a negative one is an int64
			return n
		}
		t.wrong(v, join(path, name), "want a whole number, not "+v.String(), "")
	default:
		t.wrong(v, join(path, name), "want a whole number", "")
	}
	return 0
}

// boolean reads true or false. Without the field, it returns the argument missing.
func (t *translation) boolean(fields map[string]ast.Node, path, name string, missing bool) bool {
	switch v := fields[name].(type) {
	case nil:
	case *ast.BoolNode:
		return v.Value
	default:
		t.wrong(v, join(path, name), "want true or false", "")
	}
	return missing
}
