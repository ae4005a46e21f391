// Package file reads policy files: it turns the text of a file into a checked
// and compiled [Spec], or returns its mistakes, each with its place and a hint.
// It opens nothing and decides nothing.
//
// Each field of a file is declared once, in the table of its mapping: how it is
// read, what it means, and an example. [Schema] and [Reference] are made of these
// tables, too.
package file

import (
	"fmt"
	"strings"
	"sync"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/policy/internal/expression"
)

// Spec is the content of a file, checked and compiled, but not yet in force.
type Spec struct {
	Name     string // of the limiter
	Sources  *expression.Sources
	Store    *Store // nil: none
	Local    Local
	Policies []*Policy

	TrustedHeaders []string  // that a client cannot choose
	Doubts         []Problem // what is legal and probably a mistake

	client   clientIP
	policies value // which are read after all other fields
}

// defaultName is the name of a file's limiter if the file does not say it.
const defaultName = "policies"

// maxPolicies is the most policies of a file.
const maxPolicies = 1000

// Options are values that a program supplies in addition to the file.
type Options struct {
	User func(r core.Request) string // who the user of a request is; nil: expressions cannot use user
	Tier bool                        // whether the program says which tier a request is of
}

// root returns the table of a whole file and the kind of its policies.
var root = sync.OnceValues(func() (*mapping[Spec], kind[[]*Policy]) {
	policies := list(policyMapping().kind(newPolicy), maxPolicies, "a list of policies", nil)
	return &mapping[Spec]{
		name: "file", want: "a mapping with the field policies",
		about: "A policy file is a YAML or JSON mapping with these fields.",
		fields: []field[Spec]{
			{
				name: "name", initial: defaultName, example: "api",
				about: "The name of the file's counters; two files that count in one store need different names.",
				value: set(name(), func(f *Spec) *string { return &f.Name }),
			}, {
				name: "client-ip", without: "the peer of the connection", example: "{trusted-proxies: [10.0.0.0/8], header: X-Forwarded-For}",
				about: "Where the client's address comes from.",
				value: set(clientMapping().kind(newClientIP), func(f *Spec) *clientIP { return &f.client }),
			}, {
				name: "trusted-headers", example: "[X-Plan]",
				about: "Headers that your proxy sets for every request, so that no client can choose their values: no warning says that a client chooses a key, a tier or a cost that reads only these.",
				value: set(list(headerName(), 100, "a list of names of headers", strings.ToLower), func(f *Spec) *[]string { return &f.TrustedHeaders }),
			}, {
				name: "store", without: "every process counts for itself", example: "{redis: {address: 'redis:6379'}}",
				about: "The store in which shared policies count.",
				value: set(storeMapping().kind(newStore), func(f *Spec) **Store { return &f.Store }),
			}, {
				name: "local", example: "{max-keys: 500000}",
				about: "Settings of this process.",
				value: set(localMapping().kind(func(value) Local { return newLocal() }), func(f *Spec) *Local { return &f.Local }),
			}, {
				name: "policies", required: true, example: "[{name: by-client, key: ip, limits: 100/m}]",
				about: "The policies; a request is charged to all policies that apply to it, or to none.",
				value: keep(policies.shape, func(f *Spec) *value { return &f.policies }),
			},
		},
	}, policies
})

// Read reads the text of a file. If there are problems, the file cannot be used.
func Read(text []byte, o Options) (*Spec, []Problem) {
	f := &Spec{Name: defaultName, Local: newLocal(), Sources: &expression.Sources{User: o.User}, client: newClientIP(value{})}
	r := &reader{spec: f, options: o}
	r.file(text)
	f.Doubts = r.doubts
	return f, r.errs
}

func (r *reader) file(text []byte) {
	v, ok := r.parse(text)
	if !ok {
		return
	}
	file, policies := root()
	if !file.read(r, v, r.spec) {
		return
	}
	// Expressions are compiled for the client's address, and policies count in the
	// store, wherever these stand in the file.
	r.client(r.spec)
	r.spec.Sources.Trusted = r.spec.TrustedHeaders
	if r.spec.policies.node == nil {
		return
	}
	all, _ := policies.read(r, r.spec.policies)
	seen := map[string]value{}
	for _, p := range all {
		if p.Name == "" {
			continue
		}
		if other, twice := seen[p.Name]; twice {
			r.bad(p.at, fmt.Sprintf("the name %s stands twice, in line %d too", p.Name, begin(other.node).Position.Line), "names tell counters apart")
		}
		seen[p.Name] = p.at
		r.spec.Policies = append(r.spec.Policies, p)
	}
	r.distinct(r.spec.Policies)
	r.oneTwin(r.spec.Policies)
	r.doubts = append(r.doubts, r.unbound(r.spec)...)
}

// Place is a place in a file.
type Place struct {
	Line, Column int    // from 1; both 0 if the whole file is meant
	Field        string // the path of the field, such as policies[0].limits; "" if none is meant
}

// Problem is a mistake in a file, or something that is legal and probably one.
type Problem struct {
	Place
	Text string // describes the mistake and quotes the value
	Hint string // what would be right; may be ""
}

// At returns the place of the policy.
func (p *Policy) At() Place { return p.at.place() }

// At returns the place of the store section.
func (s *Store) At() Place { return s.at.place() }

// At returns the place of the server.
func (s *Postgres) At() Place { return s.at.place() }

// At returns the place of the secret.
func (s Secret) At() Place { return s.at.place() }
