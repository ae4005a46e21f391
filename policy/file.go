package policy

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

// fileSpec is what a file says, checked and compiled, but not yet at work.
type fileSpec struct {
	name     string // of the limiter
	sources  *sources
	store    *storeSpec // nil: none
	maxKeys  int        // of local counters; 0: the default
	policies []*policySpec
	byRule   map[string]*policySpec // by the names of the limiter's rules
	index    *index
	doubts   []*Error
}

// policySpec is what a file says of one policy.
type policySpec struct {
	at      value
	name    string
	match   match
	shared  bool
	headers core.Headers
	shadow  bool
	allow   []netip.Prefix
	deny    []netip.Prefix
	denyAt  value
	cost    *expression // nil: 1
	denied  deniedSpec
	rules   []ruleSpec

	first, end int // of the limiter's rules, those that are the policy's
}

// deniedSpec is what a refused client gets in place of the default.
type deniedSpec struct {
	status      int
	body        []byte
	contentType string
	header      []core.Header
}

// defaultName is the name of a file's limiter if the file does not say it.
const defaultName = "policies"

// maxPolicies is the most policies of a file.
const maxPolicies = 1000

// read reads a file's text.
func (r *reader) read(text []byte, o *options) *fileSpec {
	root, ok := r.parse(text)
	if !ok {
		return nil
	}
	f := &fileSpec{name: defaultName, sources: &sources{user: o.user}}
	var policies, client value
	given := r.mapping(root, "a mapping with the field policies",
		field{"name", func(v value) { f.name, _ = r.name(v) }},
		field{"client-ip", func(v value) { client = v }},
		field{"store", func(v value) { f.store = r.store(v) }},
		field{"local", func(v value) { r.local(v, f) }},
		field{"policies", func(v value) { policies = v }},
	)
	if given == nil {
		return nil
	}
	// Expressions are compiled for the client's address, wherever that stands.
	r.clientIP(client, f.sources)
	if !has(given, "policies") {
		r.bad(root, "the field policies is missing", "")
		return nil
	}
	seen := map[string]value{}
	for _, v := range r.list(policies, maxPolicies, "a list of policies") {
		p := r.policy(v, f, o)
		if p == nil || p.name == "" {
			continue
		}
		if other, twice := seen[p.name]; twice {
			r.bad(v, fmt.Sprintf("the name %s stands twice, in line %d too", p.name, begin(other.node).Position.Line), "names tell counters apart")
		}
		seen[p.name] = v
		f.policies = append(f.policies, p)
	}
	r.distinct(f.policies)
	r.doubts = append(r.doubts, r.unbound(f)...)
	f.doubts = r.doubts
	return f
}

func (r *reader) local(v value, f *fileSpec) {
	r.mapping(v, "a mapping with max-keys", field{"max-keys", func(v value) {
		n, _ := r.integer(v, 1, 1<<31-1)
		f.maxKeys = int(n)
	}})
}

// clientIP reads where the client's address comes from.
func (r *reader) clientIP(v value, s *sources) {
	bits := keyfuncs.DefaultIPv6Prefix
	var header string
	var proxies []string
	before := len(r.errs)
	if v.node != nil {
		given := r.mapping(v, "a mapping with trusted-proxies and header",
			field{"trusted-proxies", func(v value) {
				for _, p := range r.prefixes(v) {
					proxies = append(proxies, p.String())
				}
			}},
			field{"header", func(v value) {
				if name, ok := r.text(v, "the name of a header such as X-Forwarded-For"); ok {
					if _, err := named("header", name); err != nil {
						r.bad(v, fmt.Sprintf("%q: %v", shorten(name), err), "")
						return
					}
					header = name
				}
			}},
			field{"ipv6-prefix", func(v value) {
				n, _ := r.integer(v, 32, 128)
				bits = int(n)
			}},
		)
		if given != nil && has(given, "trusted-proxies") != has(given, "header") {
			r.bad(v, "trusted-proxies and header are both needed, or neither", "a header is believed from listed proxies alone")
		}
	}
	s.ip, s.address = keyfuncs.ClientIP(), keyfuncs.ClientIP(keyfuncs.IPv6Prefix(128))
	if len(r.errs) > before {
		return
	}
	var opts []keyfuncs.ClientIPOption
	if header != "" {
		opts = append(opts, keyfuncs.Behind(header, proxies...))
	}
	ip, err := keyfuncs.NewClientIP(append(slices.Clone(opts), keyfuncs.IPv6Prefix(bits))...)
	if err != nil {
		r.bad(v, reason(err), "")
		return
	}
	s.ip, s.address = ip, keyfuncs.ClientIP(append(opts, keyfuncs.IPv6Prefix(128))...)
}

// prefixes reads a list of addresses and prefixes.
func (r *reader) prefixes(v value) []netip.Prefix {
	var all []netip.Prefix
	for _, item := range r.list(v, 10_000, "a list of prefixes such as 10.0.0.0/8") {
		text, ok := r.text(item, "a prefix such as 10.0.0.0/8")
		if !ok {
			continue
		}
		p, err := parsePrefix(text)
		if err != nil {
			r.bad(item, err.Error(), "")
			continue
		}
		if slices.Contains(all, p) {
			r.bad(item, fmt.Sprintf("%v: stands twice", p), "")
		}
		all = append(all, p)
	}
	return all
}

// expression reads and compiles an expression. allowed is asked about its type.
func (r *reader) expression(v value, f *fileSpec, want string, allowed func(e *expression) bool) *expression {
	text, ok := r.text(v, want)
	if !ok {
		return nil
	}
	e, bad := compile(text, f.sources)
	if bad != nil {
		opened, _ := r.open(v)
		lines, columns := bad.line, bad.column
		if lines == 0 && !strings.Contains(text, "\n") {
			columns += quoted(opened)
		} else {
			columns = 0
		}
		r.badAt(opened, lines, columns, bad.problem, bad.hint)
		return nil
	}
	if !allowed(e) {
		r.bad(v, fmt.Sprintf("%q is %s: want %s", shorten(text), article(e.result), want), "")
		return nil
	}
	return e
}
