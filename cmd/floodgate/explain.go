package main

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"strings"

	"github.com/spf13/cobra"

	"github.com/floodgate-go/floodgate/cmd/floodgate/internal/report"
	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/httprequest"
	"github.com/floodgate-go/floodgate/policy"
)

// requestFlags describe the request that explain explains.
type requestFlags struct {
	method, target, route, from, user, tier, data string
	headers, params                               []string
}

func explainCommand() *cobra.Command {
	var q requestFlags
	c := &cobra.Command{
		Use:   "explain FILE",
		Short: "Show which policies apply to a request, with keys and limits",
		Long:  "explain shows for each policy of a file whether it applies to a request, and why. If it applies, explain shows the key and the limits of each rule, with the quotas of the key.",
		Args:  cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			r, err := q.request()
			if err != nil {
				return fmt.Errorf("%w: %w", errUsage, err)
			}
			return withMemory(args[0], func(set *policy.Set) error {
				return writeExplanation(c.OutOrStdout(), set.Policies(), set.Explain(httprequest.Request{HTTP: r}))
			}, policy.WithUser(func(core.Request) string { return q.user }), policy.WithTier(func(core.Request) (string, error) { return q.tier, nil }))
		},
	}
	f := c.Flags()
	f.StringVar(&q.method, "method", http.MethodGet, "the method of the request")
	f.StringVar(&q.target, "path", "/", "the path of the request, with its query")
	f.StringVar(&q.route, "route", "", "the pattern of the matched route, for files that use route")
	f.StringArrayVar(&q.headers, "header", nil, `a header, such as "X-Api-Key: k"; may be repeated`)
	f.StringArrayVar(&q.params, "param", nil, "a parameter of the route, such as id=5, for files that use param; may be repeated")
	f.StringVar(&q.data, "data", "", "the body of the request")
	f.StringVar(&q.from, "from", "192.0.2.1", "the address of the connection's peer")
	f.StringVar(&q.user, "user", "", "the user that the program would return, for files that use user")
	f.StringVar(&q.tier, "tier", "", "the tier that the program would return, for rules with tiers and no tier expression")
	return c
}

// request returns the request as a server reads it: //login is a path, and dots and escapes stay.
func (q *requestFlags) request() (*http.Request, error) {
	if q.target == "" || q.target[0] != '/' && q.target != "*" || strings.ContainsAny(q.target, " \t\r\n") {
		return nil, fmt.Errorf("--path: %q: want a path such as /users/5?a=b", q.target)
	}
	if q.method == "" || strings.ContainsAny(q.method, " \t\r\n") {
		return nil, fmt.Errorf("--method: %q: want a method such as GET", q.method)
	}
	text := q.method + " " + q.target + " HTTP/1.1\r\n"
	for _, h := range q.headers {
		if name, _, found := strings.Cut(h, ":"); !found || strings.TrimSpace(name) == "" || strings.ContainsAny(h, "\r\n") {
			return nil, fmt.Errorf("--header: %q: want Name: value", h)
		}
		text += h + "\r\n"
	}
	r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(text + "\r\n")))
	if err != nil {
		return nil, fmt.Errorf("--method, --path and --header: a server cannot read %q: %w", text, err)
	}
	r.Host, r.Pattern = cmp.Or(r.Host, "localhost"), q.route
	r.Body, r.ContentLength = io.NopCloser(strings.NewReader(q.data)), int64(len(q.data))
	for _, p := range q.params {
		name, value, found := strings.Cut(p, "=")
		if !found || name == "" {
			return nil, fmt.Errorf("--param: %q: want name=value", p)
		}
		r.SetPathValue(name, value)
	}
	if q.data != "" && r.Header.Get("Content-Type") == "" {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	from, err := netip.ParseAddr(q.from)
	if err != nil {
		return nil, fmt.Errorf("--from: %q: want an address such as 192.0.2.1 or 2001:db8::1", q.from)
	}
	r.RemoteAddr = netip.AddrPortFrom(from, 0).String()
	return r, nil
}

func writeExplanation(w io.Writer, policies []policy.Policy, all []policy.Explanation) error {
	var b strings.Builder
	for i, p := range all {
		b.WriteString(p.Policy)
		if policies[i].DryRun {
			b.WriteString(" (dry run: denies nothing)")
		}
		if !p.Applies {
			fmt.Fprintf(&b, ": does not apply: %s\n", report.Plain(p.Why))
			continue
		}
		fmt.Fprintf(&b, ": applies: %s\n", report.Plain(p.Why))
		if p.Denied {
			b.WriteString("  denied with 403: the list deny has the address, or the list only lacks it\n")
		}
		if p.Err != nil {
			fmt.Fprintf(&b, "  denied with 400: %s\n", report.Plain(p.Err.Error()))
		}
		if p.Denied || p.Err != nil {
			continue // it is charged to no rule
		}
		counts := "in each process by itself"
		if policies[i].Shared {
			counts = "in the store, for all processes together"
		}
		fmt.Fprintf(&b, "  cost %d, counted %s\n", p.Cost, counts)
		if wait := policies[i].Wait; wait > 0 && !policies[i].DryRun {
			fmt.Fprintf(&b, "  if a limit denies it, it waits for its turn, at most %v\n", wait)
		}
		if p.Tier != "" {
			fmt.Fprintf(&b, "  tier %s\n", p.Tier)
		}
		key := "key " + report.Key(p.Key)
		if p.Key == "" {
			key = "one counter for all requests without a key"
		}
		fmt.Fprintf(&b, "  %s\n", key)
		for _, l := range p.Limits {
			fmt.Fprintf(&b, "    %v\n", l)
		}
		if p.InFlight != nil {
			fmt.Fprintf(&b, "    %d at a time\n", *p.InFlight)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}
