package mulesoft_test

import (
	"log/slog"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/floodgate-go/floodgate/cmd/floodgate/internal/mulesoft"
	"github.com/floodgate-go/floodgate/policy"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	flex  = "policyRef: {name: rate-limiting-flex}\nconfig:\n  clusterizable: false\n  rateLimits: [{maximumRequests: 3, timePeriodInMilliseconds: 6000}]\n"
	spike = "policyRef: {name: spike-control-flex}, config: {maximumRequests: 1, timePeriodInMilliseconds: 1000"

	head   = "# Written by floodgate import.\n"
	limits = "    limits:\n      - {maximumRequests: 3, timePeriodInMilliseconds: 6000}\n"
)

func TestWhatIsWritten(t *testing.T) {
	const key, local = "    missing: own-bucket\n" + limits, "    counting: local\n"
	for name, c := range map[string]struct{ file, want string }{
		"no key":          {flex, "  - name: \"rate-limit\"\n" + limits + local},
		"an empty key":    {flex + "  keySelector: \"\"\n", "  - name: \"rate-limit\"\n" + limits + local},
		"headers":         {flex + "  exposeHeaders: true\n", "  - name: \"rate-limit\"\n" + limits + "    headers: x-milliseconds\n" + local},
		"the method":      {flex + "  keySelector: \"#[attributes.method]\"\n", "  - name: \"rate-limit\"\n    key: \"#[attributes.method]\"\n" + key + local},
		"the path":        {flex + "  keySelector: \"#[ attributes.requestPath ]\"\n", "  - name: \"rate-limit\"\n    key: \"#[ attributes.requestPath ]\"\n" + key + local},
		"the address":     {flex + "  keySelector: '#[attributes.remoteAddress]'\n", "  - name: \"rate-limit\"\n    key: \"#[attributes.remoteAddress]\"\n" + key + local},
		"a header":        {flex + "  keySelector: '#[attributes.headers[\"client_id\"]]'\n", "  - name: \"rate-limit\"\n    key: \"#[attributes.headers['client_id']]\"\n" + key + local},
		"a parameter":     {flex + "  keySelector: \"#[attributes.queryParams['identifier']]\"\n", "  - name: \"rate-limit\"\n    key: \"#[attributes.queryParams['identifier']]\"\n" + key + local},
		"another one":     {flex + "  keySelector: \"#[attributes.queryParam['customIdentifier']]\"\n", "  - name: \"rate-limit\"\n    key: \"#[attributes.queryParam['customIdentifier']]\"\n" + key + local},
		"all replicas":    {strings.Replace(flex, "false", "true", 1), "# clusterizable: add the field store. Without it, each process counts by itself.\npolicies:\n  - name: \"rate-limit\"\n" + limits},
		"by default":      {strings.Replace(flex, "  clusterizable: false\n", "", 1), "# clusterizable: add the field store. Without it, each process counts by itself.\npolicies:\n  - name: \"rate-limit\"\n" + limits},
		"spike control":   {"[{" + spike + ", delayTimeInMillis: 250, delayAttempts: 2, exposeHeaders: true}}]", "  - name: \"spike-control\"\n    limits: 1/1000ms sliding_log\n    wait: 500ms\n    headers: x-milliseconds\n" + local},
		"a large spike":   {"{" + strings.Replace(spike, ": 1,", ": 10001,", 1) + "}}", "  - name: \"spike-control\"\n    limits: 10001/1000ms sliding_window\n" + local},
		"a binding":       {"kind: PolicyBinding\nmetadata: {name: per method ü}\nspec: {targetRef: {name: shop}, order: 1, " + spike + "}}", "  - name: \"per-method--\"\n"},
		"a long name":     {"metadata: {name: " + strings.Repeat("n", 60) + "}\nspec: {" + spike + "}}", "  - name: \"" + strings.Repeat("n", 40) + "\"\n"},
		"a number":        {"metadata: {name: \"123\"}\nspec: {" + spike + "}}", "  - name: \"123\"\n"},
		"an API":          {"kind: ApiInstance\nmetadata: {name: shop}\nspec:\n  address: http://0.0.0.0:8080\n  policies: [{" + spike + "}}, {" + spike + "}}]", "  - name: \"spike-control-2\"\n"},
		"empty documents": {"{" + spike + "}}\n---\n---\n# nothing\n", "  - name: \"spike-control\"\n"},
		"a comment's own": {"{" + spike + "}}\n---\n# comment\n---\n{" + spike + "}}\n", "  - name: \"spike-control-2\"\n"},
		"one API twice":   {"spec: {targetRef: {name: shop}, " + spike + "}}\n---\nspec: {targetRef: {name: shop}, " + spike + "}}\n", "  - name: \"spike-control-2\"\n"},
	} {
		text, err := mulesoft.Import("mulesoft.yaml", []byte(c.file))
		if got := string(text); err != nil || !strings.HasPrefix(got, head) || !strings.Contains(got, c.want) || strings.Contains(c.want, "  counting") && got != head+"policies:\n"+c.want {
			t.Errorf("%s: %v, writes\n%s\nwant\n%s", name, err, got, c.want)
		}
	}
}

// Each mistake is an error with its place, and nothing is written.
func TestWhatIsNotTranslated(t *testing.T) {
	const known = " (known are attributes.method, attributes.requestPath, attributes.remoteAddress, attributes.headers['x'] and attributes.queryParams['x'], in #[ ])"
	selector := func(s string) string { return flex + "  keySelector: " + s + "\n" }
	limit := func(s string) string {
		return "policyRef: {name: rate-limiting-flex}\nconfig: {rateLimits: [" + s + "]}\n"
	}
	for file, want := range map[string]string{
		"":                                 "m.yaml: has no policies (want policyRef: {name: rate-limiting-flex} and config)",
		"a: 1":                             "m.yaml:1:1: has neither policyRef nor policies (import reads rate limiting policies only: remove this part)",
		"hello":                            "m.yaml:1:1: want a mapping",
		"a: [":                             "is no YAML",
		strings.Repeat("[", 60_000):        "brackets are nested more than 200 deep",
		strings.Repeat(" ", 64<<10) + "a":  "m.yaml: has more than 65536 bytes",
		"- " + "&a {policyRef: {name: x}}": "m.yaml:1:3: [0]: want a mapping",
		"policies: 5":                      "m.yaml:1:11: policies: want a list",
		"policies: [5]":                    "m.yaml:1:12: policies[0]: want a mapping",
		"policyRef: x":                     "m.yaml:1:1: policyRef or config is missing (want policyRef: {name: rate-limiting-flex} and config)",
		"{policyRef: x, config: {}}":       "m.yaml:1:13: policyRef: want a mapping",
		"{policyRef: {name: cors-flex}, config: {}}":                                                      `policyRef.name: "cors-flex" is not translated (known are rate-limiting-flex and spike-control-flex)`,
		"spec: {sharedStorage: {redis: {address: 'redis:6379', password: hush}}}":                         "spec: has neither policyRef nor policies",
		"spec: {targetRef: {name: a}, " + spike + "}}\n---\nspec: {targetRef: {name: b}, " + spike + "}}": "m.yaml:3:26: spec.targetRef.name: is another API than a (import the policies of one API at a time)",
		flex + "rules: [{path: /a}]\n":                                                                    "m.yaml:5:1: rules: is not translated (known are policyRef, config, targetRef, order)",
		flex + "  burst: 3\n":                                                                             "m.yaml:5:3: config.burst: is not translated (known are rateLimits, keySelector, exposeHeaders, clusterizable)",
		flex + "  exposeHeaders: 5\n":                                                                     "m.yaml:5:18: config.exposeHeaders: want true or false",
		"{" + spike + ", queuingLimit: 5}}":                                                               "config.queuingLimit: is not translated",
		"{" + spike + ", delayAttempts: 5}}":                                                              "config.delayTimeInMillis: is missing",
		"{" + spike + ", delayAttempts: 9223372036854775807, delayTimeInMillis: 9223372036854775807}}":    "config: wait: ",
		selector("7"):                                                "m.yaml:5:16: config.keySelector: is not translated" + known,
		selector("all"):                                              "m.yaml:5:16: config.keySelector: is not translated" + known,
		selector("'#[payload.id]'"):                                  "m.yaml:5:16: config.keySelector: is not translated" + known,
		selector(`"#[attributes.headers['a b']]"`):                   known,
		selector(`"#[attributes.headers['a'] default 'b']"`):         known,
		selector(`"#[attributes.method ++ attributes.requestPath]"`): known,
		"{policyRef: {name: rate-limiting-flex}, config: {}}":        "config.rateLimits: is missing (want a list of {maximumRequests: 3, timePeriodInMilliseconds: 10000})",
		limit(""):                     "m.yaml:2:22: config.rateLimits: want a list",
		limit("5"):                    "m.yaml:2:23: config.rateLimits[0]: want a mapping",
		limit("{maximumRequests: 5}"): "config.rateLimits[0].timePeriodInMilliseconds: is missing",
		limit("{maximumRequests: x, timePeriodInMilliseconds: 1}"):                                                    "m.yaml:2:41: config.rateLimits[0].maximumRequests: want a whole number",
		limit("{maximumRequests: -3, timePeriodInMilliseconds: 1}"):                                                   "config.rateLimits[0].maximumRequests: want a whole number, not -3",
		limit("{maximumRequests: 1, timePeriodInMilliseconds: 0}"):                                                    "m.yaml:1:1: config: limits[0].timePeriodInMilliseconds: 0: ",
		limit("{maximumRequests: 2147483648, timePeriodInMilliseconds: 1}"):                                           "config: limits[0].maximumRequests: 2147483648: ",
		limit("{maximumRequests: 1, timePeriodInMilliseconds: 31622400001}"):                                          "config: limits[0].timePeriodInMilliseconds: 31622400001: ",
		limit("{maximumRequests: 1, timePeriodInMilliseconds: 9}, {maximumRequests: 2, timePeriodInMilliseconds: 9}"): "m.yaml:1:1: config: Limits[1]: 2 per 9ms",
	} {
		text, err := mulesoft.Import("m.yaml", []byte(file))
		if err == nil || text != nil || !strings.Contains(err.Error(), want) || len(policy.Errors(err)) == 0 || strings.Contains(err.Error(), "hush") {
			t.Errorf("%.90q: %v, want %s; writes %s", file, err, want, text)
		}
	}
	_, err := mulesoft.Import("m.yaml", []byte(flex+"  a: 1\n  b: 2\n---\n{"+spike+"}}\n---\nx: 1\n"))
	if all := policy.Errors(err); len(all) != 3 || all[2].Line != 10 {
		t.Errorf("of three mistakes it reports %v", all)
	}
}

// Any file gives a policy file that loads, or an error.
func FuzzImport(f *testing.F) {
	f.Add([]byte(flex + "  keySelector: \"#[attributes.headers['x']]\"\n"))
	f.Add([]byte("spec: {policies: [{" + spike + "}}]}"))
	f.Add([]byte("metadata: {name: \"a\\u2028\\x1b\"}\nspec: {policyRef: {name: x}, rules: 1}"))
	f.Fuzz(func(t *testing.T, file []byte) {
		text, err := mulesoft.Import("mulesoft.yaml", file)
		if err != nil {
			if text != nil {
				t.Errorf("an error and a file: %s", text)
			}
			return
		}
		set, err := policy.Parse("imported", text, policy.Log(slog.New(slog.DiscardHandler)))
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		if err := set.Close(); err != nil {
			t.Error(err)
		}
	})
}
