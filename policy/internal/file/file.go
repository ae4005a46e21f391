// Package file reads policy files: it turns the text of a file into a checked and compiled [Spec],
// or returns its mistakes, each with its place and a hint. It opens nothing and decides nothing.
package file

import (
	"net/netip"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/keyfuncs"
	"github.com/floodgate-go/floodgate/policy/internal/expression"
	"github.com/floodgate-go/floodgate/policy/internal/words"
)

// Spec is the content of a file, checked and compiled, but not yet in force.
type Spec struct {
	Name     string // of the limiter
	Sources  *expression.Sources
	Store    *Store // nil: none
	Local    Local
	Policies []*Policy
	Doubts   []Problem // values that are legal and probably mistakes
}

// Local has the settings of the process.
type Local struct {
	MaxKeys         int // of local counters
	MaxWaitingOfKey int // requests
}

// maxPolicies is the most policies of a file.
const maxPolicies = 1000

// Options are values that a program supplies in addition to the file.
type Options struct {
	User func(r core.Request) string // policy.WithUser; nil: expressions cannot use user
	Tier bool                        // the program has given policy.WithTier
}

// Place is a place in a file.
type Place struct {
	Line, Column int    // from 1; both 0 if the whole file is meant
	Field        string // the path of the field, such as policies[0].limits; "" if none is meant
}

// Problem is a mistake in a file, or a value that is legal and probably a mistake.
type Problem struct {
	Place
	Text string // describes the mistake and quotes the value
	Hint string // what to write instead; may be ""
}

// Read reads the text of a file. If there are problems, the file cannot be used.
func Read(text []byte, o Options) (*Spec, []Problem) {
	r := &reader{options: o, spec: &Spec{
		Name:    "policies",
		Sources: &expression.Sources{User: o.User, IP: keyfuncs.ClientIP(), Address: keyfuncs.ClientIP(keyfuncs.IPv6Prefix(128))},
		Local:   Local{MaxKeys: core.DefaultMaxKeys, MaxWaitingOfKey: 100},
	}}
	if v, ok := r.parse(text); ok {
		r.file(v)
	}
	r.spec.Doubts = r.doubts
	return r.spec, r.errs
}

func (r *reader) file(v value) {
	f, policies := r.spec, value{}
	m, ok := r.fields(v, "a mapping with the field policies",
		field{"name", into(&f.Name, r.name)},
		field{"client-ip", r.clientIP},
		field{"trusted-headers", into(&f.Sources.Trusted, list(r, 100, "a list of names of headers", r.headerName))},
		field{"store", into(&f.Store, r.store)},
		field{"local", into(&f.Local, r.local)},
		field{"policies", func(v value) { policies = v }},
	)
	if !ok {
		return
	}
	m.requires("", "policies")
	if !m.has("policies") {
		return
	}
	// Policies are read last, because they need client-ip and store, which may follow them in the
	// file.
	all, _ := list(r, maxPolicies, "a list of policies", r.policy)(policies)
	for _, p := range all {
		if p.Name != "" {
			f.Policies = append(f.Policies, p)
		}
	}
	r.distinct(f.Policies)
	r.oneTwin(f.Policies)
	r.doubtUnbound(f.Policies)
}

func (r *reader) local(v value) (Local, bool) {
	l := r.spec.Local
	_, ok := r.fields(v, "a mapping with max-keys",
		field{"max-keys", into(&l.MaxKeys, whole(r, 1, 1<<31-1))},
		field{"max-waiting-of-key", into(&l.MaxWaitingOfKey, whole(r, 1, 100_000))},
	)
	return l, ok
}

// clientIP reads the proxies and the header of the client's address.
func (r *reader) clientIP(v value) {
	var proxies []netip.Prefix
	var header string
	bits := keyfuncs.DefaultIPv6Prefix
	m, _ := r.fields(v, "a mapping with trusted-proxies and header",
		field{"trusted-proxies", into(&proxies, r.prefixes)},
		field{"header", into(&header, r.headerName)},
		field{"ipv6-prefix", into(&bits, whole(r, 32, 128))},
	)
	if m.has("trusted-proxies") != m.has("header") {
		r.bad(v, "trusted-proxies and header are both needed, or neither", "a header is believed from listed proxies alone")
	}
	if !m.fine() {
		return
	}
	var behind []keyfuncs.ClientIPOption
	if header != "" {
		var texts []string
		for _, p := range proxies {
			texts = append(texts, p.String())
		}
		behind = []keyfuncs.ClientIPOption{keyfuncs.Behind(header, texts...)}
	}
	ip, err := keyfuncs.NewClientIP(append(behind, keyfuncs.IPv6Prefix(bits))...)
	if err != nil {
		r.bad(v, words.Reason(err), "")
		return
	}
	r.spec.Sources.IP, r.spec.Sources.Address = ip, keyfuncs.ClientIP(append(behind, keyfuncs.IPv6Prefix(128))...)
}
