// Package file reads policy files: it turns the text of a file into a checked
// and compiled [Spec], or returns its mistakes, each with its place and a hint.
// It opens nothing and decides nothing.
package file

import (
	"net/netip"
	"strings"

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
	Doubts   []Problem // what is legal and probably a mistake

	client clientIP
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
	User func(r core.Request) string // who the user of a request is; nil: expressions cannot use user
	Tier bool                        // whether the program says which tier a request is of
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

// Read reads the text of a file. If there are problems, the file cannot be used.
func Read(text []byte, o Options) (*Spec, []Problem) {
	r := &reader{options: o, spec: &Spec{
		Name: "policies", Sources: &expression.Sources{User: o.User}, client: clientIP{bits: keyfuncs.DefaultIPv6Prefix},
		Local: Local{MaxKeys: core.DefaultMaxKeys, MaxWaitingOfKey: 100},
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
		field{"client-ip", into(&f.client, r.clientIP)},
		field{"trusted-headers", into(&f.Sources.Trusted, list(r, 100, "a list of names of headers", r.headerName, strings.ToLower))},
		field{"store", into(&f.Store, r.store)},
		field{"local", into(&f.Local, r.local)},
		field{"policies", func(v value) { policies = v }},
	)
	if !ok {
		return
	}
	m.requires("", "policies")
	// Expressions are compiled for the client's address, and policies count in the
	// store, wherever these stand in the file.
	r.client(f.client)
	if !m.has("policies") {
		return
	}
	all, _ := list(r, maxPolicies, "a list of policies", r.policy, nil)(policies)
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
		field{"max-waiting-of-key", into(&l.MaxWaitingOfKey, whole(r, 1, 1_000_000))},
	)
	return l, ok
}

// clientIP is where the client's address comes from.
type clientIP struct {
	at      value
	proxies []netip.Prefix
	header  string
	bits    int // of an IPv6 address
	broken  bool
}

func (r *reader) clientIP(v value) (clientIP, bool) {
	c := clientIP{at: v, bits: keyfuncs.DefaultIPv6Prefix}
	m, ok := r.fields(v, "a mapping with trusted-proxies and header",
		field{"trusted-proxies", into(&c.proxies, r.prefixes)},
		field{"header", into(&c.header, r.headerName)},
		field{"ipv6-prefix", into(&c.bits, whole(r, 32, 128))},
	)
	if m.has("trusted-proxies") != m.has("header") {
		r.bad(v, "trusted-proxies and header are both needed, or neither", "a header is believed from listed proxies alone")
	}
	c.broken = !m.fine()
	return c, ok
}

// client makes the sources of the client's address.
func (r *reader) client(c clientIP) {
	s := r.spec.Sources
	s.IP, s.Address = keyfuncs.ClientIP(), keyfuncs.ClientIP(keyfuncs.IPv6Prefix(128))
	if c.broken {
		return
	}
	var opts []keyfuncs.ClientIPOption
	if c.header != "" {
		var proxies []string
		for _, p := range c.proxies {
			proxies = append(proxies, p.String())
		}
		opts = append(opts, keyfuncs.Behind(c.header, proxies...))
	}
	with := func(bits int) []keyfuncs.ClientIPOption {
		return append(opts[:len(opts):len(opts)], keyfuncs.IPv6Prefix(bits))
	}
	ip, err := keyfuncs.NewClientIP(with(c.bits)...)
	if err != nil {
		r.bad(c.at, words.Reason(err), "")
		return
	}
	s.IP, s.Address = ip, keyfuncs.ClientIP(with(128)...)
}
