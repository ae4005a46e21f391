package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"

	"github.com/spf13/cobra"

	httplimit "github.com/floodgate-go/floodgate/adapters/nethttp"
	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/report"
	"github.com/floodgate-go/floodgate/policy"
)

// asked is the request that explain is asked about.
type asked struct {
	method, target, from, user, tier, data string
	headers                                []string
}

func explainCommand() *cobra.Command {
	var q asked
	c := &cobra.Command{
		Use:   "explain FILE",
		Short: "Tell which policies are for a request, with which keys and limits",
		Long:  "explain tells for every policy of a file whether it is for a request, and why; the key of each rule; and its limits in words.",
		Args:  cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			r, err := q.request()
			if err != nil {
				return fmt.Errorf("%w: %w", errUsage, err)
			}
			return withMemory(args[0], func(set *policy.Set) error {
				return ask(r, func(r core.Request) error { return writeExplanation(c.OutOrStdout(), set.Explain(r)) })
			}, policy.WithUser(func(core.Request) string { return q.user }), policy.WithTier(func(core.Request) (string, error) { return q.tier, nil }))
		},
	}
	f := c.Flags()
	f.StringVar(&q.method, "method", http.MethodGet, "the request's method")
	f.StringVar(&q.target, "path", "/", "its path, with its query")
	f.StringArrayVar(&q.headers, "header", nil, `a header, such as "X-Api-Key: k"; may be given several times`)
	f.StringVar(&q.data, "data", "", "its body; @FILE reads a file")
	f.StringVar(&q.from, "from", "192.0.2.1", "the address of the connection's peer")
	f.StringVar(&q.user, "user", "", "the user, for files that ask the program")
	f.StringVar(&q.tier, "tier", "", "the tier, for files that ask the program")
	return c
}

func (q *asked) request() (*http.Request, error) {
	u, err := url.ParseRequestURI(q.target)
	if err != nil {
		return nil, fmt.Errorf("--path: %q: want a path such as /users/5?a=b", q.target)
	}
	if path, isFile := strings.CutPrefix(q.data, "@"); isFile {
		text, err := os.ReadFile(path) //nolint:gosec // the user has named it
		if err != nil {
			return nil, fmt.Errorf("--data: %w", err)
		}
		q.data = string(text)
	}
	r, err := http.NewRequest(q.method, u.String(), strings.NewReader(q.data)) //nolint:noctx // it goes nowhere
	if err != nil {
		return nil, fmt.Errorf("--method: %q: is no method", q.method)
	}
	for _, h := range q.headers {
		name, value, found := strings.Cut(h, ":")
		if name = strings.TrimSpace(name); !found || name == "" || strings.ContainsAny(name, " \t\r\n") {
			return nil, fmt.Errorf("--header: %q: want Name: value", h)
		}
		r.Header.Add(name, strings.TrimSpace(value))
	}
	if q.data != "" && r.Header.Get("Content-Type") == "" {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	r.RemoteAddr = q.from
	if !strings.Contains(q.from, "]:") && strings.Count(q.from, ":") != 1 {
		r.RemoteAddr = "[" + strings.Trim(q.from, "[]") + "]:0"
		if !strings.Contains(q.from, ":") {
			r.RemoteAddr = q.from + ":0"
		}
	}
	return r, nil
}

// ask shows a request as the adapter for net/http does.
func ask(r *http.Request, see func(core.Request) error) (err error) {
	limiter, err := core.New(core.Config{
		Rules: []core.Rule{{Key: core.TakeOnly, Limits: []core.Limit{core.PerSecond(1)}}},
		Hooks: core.HookFuncs{ShouldLimit: func(r core.Request) bool { err = see(r); return false }}.Hooks(),
	})
	if err != nil {
		return err
	}
	httplimit.Middleware(limiter)(http.NotFoundHandler()).ServeHTTP(httptest.NewRecorder(), r)
	return err
}

func writeExplanation(w io.Writer, all policy.Explanation) error {
	var b strings.Builder
	for _, p := range all {
		b.WriteString(p.Policy)
		if p.Shadow {
			b.WriteString(" (shadow: refuses nothing)")
		}
		if !p.Applies {
			fmt.Fprintf(&b, ": is not for this request: %s\n", report.Plain(p.Why))
			continue
		}
		fmt.Fprintf(&b, ": is for this request: %s\n", report.Plain(p.Why))
		if p.Denied {
			b.WriteString("  refused with 403: the address is in the list deny\n")
		}
		if p.Err != nil {
			fmt.Fprintf(&b, "  refused: %s\n", report.Plain(p.Err.Error()))
		}
		counts := "in each process"
		if p.Shared {
			counts = "in the store, for all processes together"
		}
		fmt.Fprintf(&b, "  costs %d, counted %s\n", p.Cost, counts)
		for _, rule := range p.Rules {
			fmt.Fprintf(&b, "  rule %s", rule.Rule)
			if rule.Tier != "" {
				fmt.Fprintf(&b, ", tier %s", rule.Tier)
			}
			if !rule.Applies {
				fmt.Fprintf(&b, ": does not apply: %s\n", report.Plain(rule.Why))
				continue
			}
			key := "the key " + report.Plain(rule.Key)
			if rule.Key == "" {
				key = "one counter for all requests without a key"
			}
			fmt.Fprintf(&b, ": %s\n", key)
			for _, l := range rule.Limits {
				fmt.Fprintf(&b, "    %s\n", policy.Words(l))
			}
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}
