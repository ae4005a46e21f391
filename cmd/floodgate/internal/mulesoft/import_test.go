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
		"no key":           {flex, "  - name: \"rate-limit\"\n" + limits + local},
		"an empty key":     {flex + "  keySelector: \"\"\n", "  - name: \"rate-limit\"\n" + limits + local},
		"headers":          {flex + "  exposeHeaders: true\n", "  - name: \"rate-limit\"\n" + limits + "    headers: x-milliseconds\n" + local},
		"the method":       {flex + "  keySelector: \"#[attributes.method]\"\n", "  - name: \"rate-limit\"\n    key: \"#[attributes.method]\"\n" + key + local},
		"the path":         {flex + "  keySelector: \"#[ attributes.requestPath ]\"\n", "  - name: \"rate-limit\"\n    key: \"#[ attributes.requestPath ]\"\n" + key + local},
		"the address":      {flex + "  keySelector: '#[attributes.remoteAddress]'\n", "  - name: \"rate-limit\"\n    key: \"#[attributes.remoteAddress]\"\n" + key + local},
		"a header":         {flex + "  keySelector: '#[attributes.headers[\"client_id\"]]'\n", "  - name: \"rate-limit\"\n    key: \"#[attributes.headers['client_id']]\"\n" + key + local},
		"a parameter":      {flex + "  keySelector: \"#[attributes.queryParams['identifier']]\"\n", "  - name: \"rate-limit\"\n    key: \"#[attributes.queryParams['identifier']]\"\n" + key + local},
		"another one":      {flex + "  keySelector: \"#[attributes.queryParam['customIdentifier']]\"\n", "  - name: \"rate-limit\"\n    key: \"#[attributes.queryParam['customIdentifier']]\"\n" + key + local},
		"all replicas":     {strings.Replace(flex, "false", "true", 1), "# clusterizable: add the field store. Without it, each process counts by itself.\npolicies:\n  - name: \"rate-limit\"\n" + limits},
		"by default":       {strings.Replace(flex, "  clusterizable: false\n", "", 1), "# clusterizable: add the field store. Without it, each process counts by itself.\npolicies:\n  - name: \"rate-limit\"\n" + limits},
		"spike control":    {"[{" + spike + ", delayTimeInMillis: 250, delayAttempts: 2, exposeHeaders: true}}]", "  - name: \"spike-control\"\n    limits: 1/1000ms sliding_log\n    wait: 500ms\n    headers: x-milliseconds\n" + local},
		"a large spike":    {"{" + strings.Replace(spike, ": 1,", ": 10001,", 1) + "}}", "  - name: \"spike-control\"\n    limits: 10001/1000ms sliding_window\n" + local},
		"a binding":        {"kind: PolicyBinding\nmetadata: {name: per method ü}\nspec: {targetRef: {name: shop}, order: 1, " + spike + "}}", "  - name: \"per-method--\"\n"},
		"a long name":      {"metadata: {name: " + strings.Repeat("n", 60) + "}\nspec: {" + spike + "}}", "  - name: \"" + strings.Repeat("n", 40) + "\"\n"},
		"a number":         {"metadata: {name: \"123\"}\nspec: {" + spike + "}}", "  - name: \"123\"\n"},
		"a limit's name":   {"metadata: {name: m}\nspec:\n  " + strings.ReplaceAll(flex, "\n", "\n  "), "  - name: \"m\"\n" + limits + local},
		"the largest file": {flex + strings.Repeat("#", 64<<10-len(flex)), "  - name: \"rate-limit\"\n" + limits + local},
		"the largest log":  {"{" + strings.Replace(spike, ": 1,", ": 10000,", 1) + ", delayAttempts: 0, delayTimeInMillis: 5}}", "  - name: \"spike-control\"\n    limits: 10000/1000ms sliding_log\n" + local},
		"a null document":  {"null\n---\n{" + spike + "}}", "  - name: \"spike-control\"\n"},
		"an API":           {"kind: ApiInstance\nmetadata: {name: shop}\nspec:\n  address: http://0.0.0.0:8080\n  policies: [{" + spike + "}}, {" + spike + "}}]", "  - name: \"spike-control-2\"\n"},
		"empty documents":  {"{" + spike + "}}\n---\n---\n# nothing\n", "  - name: \"spike-control\"\n"},
		"a comment's own":  {"{" + spike + "}}\n---\n# comment\n---\n{" + spike + "}}\n", "  - name: \"spike-control-2\"\n"},
		"one API twice":    {"spec: {targetRef: {name: shop}, " + spike + "}}\n---\nspec: {targetRef: {name: shop}, " + spike + "}}\n", "  - name: \"spike-control-2\"\n"},
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
	const fields, kinds = " (want policyRef: {name: rate-limiting-flex} and config)", " (known are rate-limiting-flex and spike-control-flex)"
	selector := func(s string) string { return flex + "  keySelector: " + s + "\n" }
	limit := func(s string) string {
		return "policyRef: {name: rate-limiting-flex}\nconfig: {rateLimits: [" + s + "]}\n"
	}
	for file, want := range map[string]string{
		"":                                ": has no policies (want policyRef: {name: rate-limiting-flex} and config)",
		"a: 1":                            ":1:1: has neither policyRef nor policies (import reads rate limiting policies only: remove this part)",
		"hello":                           ":1:1: want a mapping",
		"- {metadata: 5, policies: []}":   ":1:14: [0].metadata: want a mapping\nm.yaml:1:27: [0].policies: want a list with one entry or more",
		"a: [":                            ":1:4: is no YAML: sequence end token ']' not found",
		strings.Repeat("[", 60_000):       ": brackets are nested more than 200 deep",
		strings.Repeat(" ", 64<<10) + "a": ": has more than 65536 bytes",
		"- &a {policyRef: {name: x}}":     ":1:3: [0]: want a mapping",
		"- - spec: 5":                     ":1:11: [0][0].spec: want a mapping",
		"policies: 5":                     ":1:11: policies: want a list with one entry or more",
		"spec: {policies: [5]}":           ":1:19: spec.policies[0]: want a mapping",
		"policyRef: x":                    ":1:1: policyRef or config is missing" + fields,
		"policies: [{config: {}}]":        ":1:12: policies[0]: policyRef or config is missing" + fields,
		"- {policyRef: x, config: {}}":    `:1:15: [0].policyRef: want a mapping` + "\n" + `m.yaml:1:15: [0].policyRef.name: "" is not translated` + kinds,
		"- {policyRef: {name: cors-flex}, config: {}}":                                                                          `:1:15: [0].policyRef.name: "cors-flex" is not translated` + kinds,
		"- {policyRef: {name: rate-limiting-flex}, config: 5, targetRef: 6}":                                                    ":1:65: [0].targetRef: want a mapping\nm.yaml:1:51: [0].config: want a mapping",
		"{policyRef: {name: spike-control-flex}, config: 5}":                                                                    ":1:49: config: want a mapping",
		"spec: {sharedStorage: {redis: {address: 'redis:6379', password: hush}}}":                                               ":1:7: spec: has neither policyRef nor policies (import reads rate limiting policies only: remove this part)",
		"- {targetRef: {name: a}, " + spike + "}}\n- {targetRef: {}, " + spike + "}}\n- {targetRef: {name: b}, " + spike + "}}": ":3:22: [2].targetRef.name: is another API than a (import the policies of one API at a time)",
		flex + "rules: [{path: /a}]\n":                                                                                          ":5:1: rules: is not translated (known are policyRef, config, targetRef, order)",
		flex + "  burst: 3\n":                                                                                                   ":5:3: config.burst: is not translated (known are rateLimits, keySelector, exposeHeaders, clusterizable)",
		strings.Replace(flex, "false", "7", 1) + "  exposeHeaders: 5\n":                                                         ":5:18: config.exposeHeaders: want true or false\nm.yaml:3:18: config.clusterizable: want true or false",
		"{" + spike + ", exposeHeaders: 5, queuingLimit: 5}}":                                                                   ":1:120: config.queuingLimit: is not translated (known are maximumRequests, timePeriodInMilliseconds, delayTimeInMillis, delayAttempts, exposeHeaders)\nm.yaml:1:117: config.exposeHeaders: want true or false",
		"{" + spike + ", delayAttempts: 5}}":                                                                                    ":1:49: config.delayTimeInMillis: is missing",
		"{policyRef: {name: spike-control-flex}, config: {delayAttempts: x, delayTimeInMillis: -1}}":                            ":1:49: config.maximumRequests: is missing\nm.yaml:1:49: config.timePeriodInMilliseconds: is missing\nm.yaml:1:65: config.delayAttempts: want a whole number\nm.yaml:1:87: config.delayTimeInMillis: want a whole number, not -1",
		"{" + spike + ", delayAttempts: 9223372036854775807, delayTimeInMillis: 9223372036854775807}}":                          `:1:1: config: wait: "85070591730234615865843651857942052864ms": want a length of time such as 500ms or 6s (units are ms, s, m, h, d and w; 366 days at most)`,
		selector("7"):                                                ":5:16: config.keySelector: is not translated" + known,
		selector("all"):                                              ":5:16: config.keySelector: is not translated" + known,
		selector("'#[payload.id]'"):                                  ":5:16: config.keySelector: is not translated" + known,
		selector(`"#[attributes.headers['a b']]"`):                   ":5:16: config.keySelector: is not translated" + known,
		selector(`"#[attributes.headers['a'] default 'b']"`):         ":5:16: config.keySelector: is not translated" + known,
		selector(`"#[attributes.method ++ attributes.requestPath]"`): ":5:16: config.keySelector: is not translated" + known,
		"{policyRef: {name: rate-limiting-flex}, config: {}}":        ":1:49: config.rateLimits: is missing (want a list of {maximumRequests: 3, timePeriodInMilliseconds: 10000})",
		limit(""):                     ":2:22: config.rateLimits: want a list with one entry or more",
		limit("5"):                    ":2:23: config.rateLimits[0]: want a mapping",
		limit("{maximumRequests: 5}"): ":2:23: config.rateLimits[0].timePeriodInMilliseconds: is missing",
		limit("{maximumRequests: x, timePeriodInMilliseconds: 1}"):                                                    ":2:41: config.rateLimits[0].maximumRequests: want a whole number",
		limit("{maximumRequests: -3, timePeriodInMilliseconds: 1}"):                                                   ":2:41: config.rateLimits[0].maximumRequests: want a whole number, not -3",
		limit("{maximumRequests: 1, timePeriodInMilliseconds: 0}"):                                                    ":1:1: config: limits[0].timePeriodInMilliseconds: 0: want a whole number from 1 to 31622400000",
		limit("{maximumRequests: 2147483648, timePeriodInMilliseconds: 1}"):                                           ":1:1: config: limits[0].maximumRequests: 2147483648: want a whole number from 0 to 2147483647",
		limit("{maximumRequests: 1, timePeriodInMilliseconds: 31622400001}"):                                          ":1:1: config: limits[0].timePeriodInMilliseconds: 31622400001: want a whole number from 1 to 31622400000",
		limit("{maximumRequests: 1, timePeriodInMilliseconds: 9}, {maximumRequests: 2, timePeriodInMilliseconds: 9}"): ":1:1: config: Limits[1]: 2 per 9ms (fixed_window): counts the same as Limits[0], 1 per 9ms (fixed_window): only their quotas differ",
	} {
		text, err := mulesoft.Import("m.yaml", []byte(file))
		if err == nil || text != nil || err.Error() != "m.yaml"+want || len(policy.Errors(err)) == 0 {
			t.Errorf("%.90q: %v, want m.yaml%s; writes %s", file, err, want, text)
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
