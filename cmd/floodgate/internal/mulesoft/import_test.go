package mulesoft_test

import (
	"log/slog"
	"os"
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
	text, err := os.ReadFile("testdata/wrong.txt") // "===", the file, ">>>", the error
	if err != nil {
		t.Fatal(err)
	}
	wrong := map[string]string{
		"":                                "m.yaml: has no policies (want policyRef: {name: rate-limiting-flex} and config)",
		strings.Repeat("[", 60_000):       "m.yaml: brackets are nested more than 200 deep",
		strings.Repeat(" ", 64<<10) + "a": "m.yaml: has more than 65536 bytes",
	}
	for _, block := range strings.Split("\n"+string(text), "\n===\n")[1:] {
		file, want, _ := strings.Cut(block, "\n>>>\n")
		wrong[file+"\n"] = strings.TrimSuffix(want, "\n")
	}
	for file, want := range wrong {
		text, err := mulesoft.Import("m.yaml", []byte(file))
		if err == nil || text != nil || err.Error() != want || len(policy.Errors(err)) == 0 {
			t.Errorf("%.90q: %v, want %s; writes %s", file, err, want, text)
		}
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
