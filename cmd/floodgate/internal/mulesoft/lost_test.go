package mulesoft_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/floodgate-go/floodgate/cmd/floodgate/internal/mulesoft"
)

const spike = "policyRef: {name: spike-control-flex}, config: {maximumRequests: 3, timePeriodInMilliseconds: 1000}"

// Policies may be in several places of a file, and what is not a policy is reported.
func TestWhereAFileHasPolicies(t *testing.T) {
	for name, c := range map[string]struct {
		file     string
		policies string // the names, in their order
		lost     string
	}{
		"a list at the top":               {"policies: [{" + spike + "}, {" + spike + "}]", "spike-control spike-control-2", ""},
		"a list of documents":             {"[{" + spike + "}, {policies: [{" + spike + "}]}]", "spike-control spike-control-2", ""},
		"a list of a resource":            {"metadata: {name: shop}\nspec: {policies: [{" + spike + "}]}", "spike-control", ""},
		"lists of two resources":          {"metadata: {name: shop}\nspec: {policies: [{" + spike + "}]}\n---\n{metadata: {name: pay}, spec: {policies: [{" + spike + "}]}}", "spike-control spike-control-2", "spike-control: the API shop: this policy applies to the requests of all APIs (write match: {paths: [/api/**]})|spike-control-2: the API pay: this policy applies to the requests of all APIs (write match: {paths: [/api/**]})"},
		"a resource with a name":          {"metadata: {name: mine}\nspec: {" + spike + "}", "mine", ""},
		"an API with a control character": {"{" + spike + "}\n---\nspec: {targetRef: {name: \"a\\e\\n\"}, " + spike + "}", "spike-control spike-control-2", "spike-control-2: the API a\\x1b\\n: this policy applies to the requests of all APIs (write match: {paths: [/api/**]})"},
		"an empty document":               {"{" + spike + "}\n---\n---\n# nothing\n", "spike-control", ""},
		"text for a list":                 {"{" + spike + "}\n---\npolicies: 5\n", "spike-control", "policies, which is not a list is not translated"},
		"text for a resource's list":      {"{" + spike + "}\n---\nspec: {policies: x}\n", "spike-control", "policies, which is not a list is not translated"},
		"an entry that is text":           {"policies: [5, {" + spike + "}, {config: {}}]\n", "spike-control", "an entry of policies without policyRef is not translated|an entry of policies without policyRef is not translated"},
		"a document that is text":         {"{" + spike + "}\n---\nhello\n", "spike-control", "a document that is not a mapping is not translated"},
		"a document of another kind":      {"{" + spike + "}\n---\nkind: Gateway\nspec: {a: 1}\n", "spike-control", "a document without policies Gateway is not translated"},
		"a document of no kind":           {"{" + spike + "}\n---\na: 1\n", "spike-control", "a document without policies is not translated"},
		"a storage that is not a Redis":   {"{" + spike + "}\n---\nspec: {sharedStorage: {file: x}}\n", "spike-control", "spec.sharedStorage is not translated"},
		"a policyRef that is text":        {"{" + spike + "}\n---\npolicyRef: x\n", "spike-control", `rate-limit: policyRef.name: "" is no rate limiting policy (known are rate-limiting-flex and spike-control-flex)`},
		"a control character":             {"{" + spike + "}\n---\npolicyRef: {name: \"x\\e[2J\\n\"}\n", "spike-control", `rate-limit: policyRef.name: "x\x1b[2J\n" is no rate limiting policy (known are rate-limiting-flex and spike-control-flex)`},
	} {
		result, err := mulesoft.Import([]byte(c.file))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var policies []string
		for line := range strings.Lines(string(result.Text)) {
			if policy, found := strings.CutPrefix(line, "  - name: "); found {
				policies = append(policies, strings.TrimSpace(policy))
			}
			if strings.ContainsRune(line, '\x1b') {
				t.Errorf("%s: writes %q", name, line)
			}
		}
		if got := strings.Join(policies, " "); got != c.policies || strings.Join(result.Lost, "|") != c.lost {
			t.Errorf("%s: policies %q, lost %q, want %q and %q\n%s", name, got, result.Lost, c.policies, c.lost, result.Text)
		}
		for _, lost := range result.Lost {
			_, what, named := strings.Cut(lost, ": ")
			if !named {
				what = lost
			}
			if !strings.Contains(string(result.Text), "# NOT TRANSLATED: "+what) && !strings.Contains(string(result.Text), "# NOT TRANSLATED: "+lost) {
				t.Errorf("%s: the file does not say %q:\n%s", name, lost, result.Text)
			}
		}
	}
}

// A wrong value of a field is reported with the name of the field, and a policy that would
// limit something else is not written.
func TestWrongFieldsOfAPolicy(t *testing.T) {
	const rate = "{maximumRequests: 3, timePeriodInMilliseconds: 1000}"
	many := strings.Join(func() (all []string) {
		for i := range 17 {
			all = append(all, fmt.Sprintf("{maximumRequests: %d, timePeriodInMilliseconds: %d}", i+1, 1000*(i+1)))
		}
		return all
	}(), ", ")
	rateLimiting := func(config string) string {
		return "policyRef: {name: rate-limiting-flex}\nconfig: {clusterizable: false, " + config + "}"
	}
	spikeControl := func(config string) string { return "policyRef: {name: spike-control-flex}\nconfig: {" + config + "}" }
	for file, want := range map[string]struct {
		written bool
		lost    string
	}{
		rateLimiting("rateLimits: [" + rate + "]"):                                                                    {true, ""},
		rateLimiting("rateLimits: [" + rate + "], exposeHeaders: 5"):                                                  {true, "rate-limit: exposeHeaders: 5: want true or false"},
		rateLimiting("rateLimits: [" + rate + "], blockOnUnknownQuota: maybe"):                                        {true, "rate-limit: blockOnUnknownQuota: maybe: want true or false"},
		"policyRef: {name: rate-limiting}\nconfig: {clusterizable: 7, rateLimits: [" + rate + "]}":                    {true, "rate-limit: clusterizable: 7: want true or false"},
		rateLimiting("rateLimits: [{maximumRequests: 3, timePeriodInMilliseconds: 1000, burst: 5}]"):                  {true, "rate-limit: rateLimits[0].burst is not known"},
		rateLimiting("rateLimits: []"):                                                                                {false, "rate-limit: rateLimits is missing"},
		rateLimiting("rateLimits: 5"):                                                                                 {false, "rate-limit: rateLimits is missing"},
		rateLimiting("rateLimits: [5]"):                                                                               {false, "rate-limit: rateLimits[0]: maximumRequests is missing (want a whole number from 1 to 2147483647); timePeriodInMilliseconds is missing"},
		rateLimiting("rateLimits: [" + many + "]"):                                                                    {false, "rate-limit: rateLimits has 17 limits: at most 16"},
		rateLimiting("rateLimits: [" + many[:strings.LastIndex(many, ", {")] + "]"):                                   {true, ""},
		rateLimiting("rateLimits: [{maximumRequests: 2147483647, timePeriodInMilliseconds: 31622400000}]"):            {true, ""},
		rateLimiting("rateLimits: [{maximumRequests: 2147483648, timePeriodInMilliseconds: 1}]"):                      {false, "rate-limit: rateLimits[0]: maximumRequests: 2147483648: want a whole number from 1 to 2147483647"},
		rateLimiting("rateLimits: [{maximumRequests: 1, timePeriodInMilliseconds: 31622400001}]"):                     {false, "rate-limit: rateLimits[0]: timePeriodInMilliseconds: 31622400001: want a whole number from 1 to 31622400000"},
		rateLimiting("rateLimits: [{maximumRequests: 18446744073709551615, timePeriodInMilliseconds: 1}]"):            {false, "rate-limit: rateLimits[0]: maximumRequests: 4611686018427387904: want a whole number"},
		spikeControl("maximumRequests: 3, timePeriodInMilliseconds: 1000, delayAttempts: 0"):                          {true, ""},
		spikeControl("maximumRequests: 3, timePeriodInMilliseconds: 1000, delayAttempts: 1"):                          {true, "spike-control: delayTimeInMillis is missing (want a whole number from 1 to 3600000)"},
		spikeControl("maximumRequests: 3, timePeriodInMilliseconds: 1000, delayTimeInMillis: 1, delayAttempts: 1001"): {true, "spike-control: delayAttempts: 1001: want a whole number from 1 to 1000"},
		spikeControl("maximumRequests: 3, timePeriodInMilliseconds: 1000, queuingLimit: 5"):                           {true, "spike-control: queuingLimit: one bound holds for all policies (write local: {max-waiting: 5})"},
		spikeControl("maximumRequests: 3, timePeriodInMilliseconds: 1000, burst: 1"):                                  {true, "spike-control: burst is not known"},
		spikeControl("maximumRequests: 3"):                                                                            {false, "spike-control: timePeriodInMilliseconds is missing (want a whole number from 1 to 31622400000)"},
		spikeControl("a: 1"):                                                                                          {false, "spike-control: a is not known; spike-control: maximumRequests is missing (want a whole number from 1 to 2147483647); timePeriodInMilliseconds is missing"},
	} {
		result, err := mulesoft.Import([]byte(file))
		lost := strings.Join(result.Lost, "; ")
		if err != nil {
			lost = strings.TrimPrefix(err.Error(), mulesoft.ErrNothing.Error()+": ")
		}
		if (err == nil) != want.written || !strings.HasPrefix(lost, want.lost) || (lost == "") != (want.lost == "") {
			t.Errorf("%s: lost %q, %v, want %q", file, lost, err, want.lost)
		}
		// Beside another policy the file is written, and has a comment for what is lost.
		result, err = mulesoft.Import([]byte(file + "\n---\n" + spikeControl("maximumRequests: 1, timePeriodInMilliseconds: 1")))
		if _, what, _ := strings.Cut(want.lost, ": "); err != nil || !strings.Contains(string(result.Text), "NOT TRANSLATED: ") == (what != "") || strings.Count(string(result.Text), "  - name: ") != map[bool]int{false: 1, true: 2}[want.written] {
			t.Errorf("%s beside another: %v, writes\n%s", file, err, result.Text)
		}
	}
}

func TestALargeSpikeControlHasAComment(t *testing.T) {
	result, err := mulesoft.Import([]byte("policyRef: {name: spike-control-flex}\nconfig: {maximumRequests: 10001, timePeriodInMilliseconds: 1000}\n"))
	if err != nil || !strings.Contains(string(result.Text), "\n  # A sliding_log has at most 10000 hits: sliding_window is close to it.\n") {
		t.Errorf("%v\n%s", err, result.Text)
	}
}

// A name has the characters that the name of a policy may have.
func TestNamesOfPolicies(t *testing.T) {
	for c := rune(' '); c < 0x100; c++ {
		want := "a-b"
		if c < 0x7f && (c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || strings.ContainsRune("_.-", c)) {
			want = "a" + string(c) + "b"
		}
		if c >= 0x7f && c < 0xa0 {
			continue // YAML has no control characters
		}
		result, err := mulesoft.Import(fmt.Appendf(nil, "metadata: {name: %q}\nspec: {%s}", "a"+string(c)+"b", spike))
		if err != nil || !strings.Contains(string(result.Text), "  - name: "+want+"\n") {
			t.Errorf("%q: %v, want the name %s\n%s", c, err, want, result.Text)
		}
	}
}

// A text in a key is written in single quotes, or as JSON writes it.
func TestKeysAreQuoted(t *testing.T) {
	for selector, want := range map[string]string{
		`'a'`: `'"a"'`, `"it's"`: `"\"it's\""`, "`it's \"<b>\"`": `"\"it's \\\"<b>\\\"\""`, `'\u00a0'`: "",
	} {
		result, err := mulesoft.Import([]byte(flex + "  keySelector: " + fmt.Sprintf("%q", "#["+selector+"]") + "\n"))
		if want == "" {
			if err == nil {
				t.Errorf("%s: an escape is translated:\n%s", selector, result.Text)
			}
			continue
		}
		if err != nil || !strings.Contains(string(result.Text), "\n    key: "+want+"\n") {
			t.Errorf("%s: %v, want %s\n%s", selector, err, want, result.Text)
		}
	}
}

func TestTheSharedStorage(t *testing.T) {
	for redis, c := range map[string]struct{ want, lost string }{
		"address: 'h:1'":                                     {"    address: 'h:1'\npolicies:", ""},
		"address: 'h:1', user: u":                            {"    address: 'h:1'\n    user: 'u'\npolicies:", ""},
		"address: 'h:1', user: u, username: v":               {"    address: 'h:1'\n    user: 'u'\npolicies:", ""},
		"address: 'h:1', user: '', username: v":              {"    address: 'h:1'\n    user: 'v'\npolicies:", ""},
		"address: 'h:1', user: 5, username: ''":              {"    address: 'h:1'\npolicies:", ""},
		"address: 'h:1', DB: 1, db: 2":                       {"    address: 'h:1'\n    db: 1\npolicies:", ""},
		"address: 'h:1', db: '9'":                            {"    db: 9\n", ""},
		"address: 'h:1', tls: true, user: u, password: p":    {"    user: 'u'\n    password: {env: REDIS_PASSWORD} # the password stays out of this file\npolicies:", "redis.tls (see the fields of store.redis)"},
		"address: 'h:1'}}}\n---\n{policyRef: {name: x, a: {": {"", `rate-limit: policyRef.name: "x" is no rate limiting policy`},
	} {
		result, err := mulesoft.Import([]byte("spec: {sharedStorage: {redis: {" + redis + "}}}\n---\n" + flex))
		if err != nil || !strings.Contains(string(result.Text), c.want) || !strings.HasPrefix(strings.Join(result.Lost, "|"), c.lost) || (len(result.Lost) == 0) != (c.lost == "") {
			t.Errorf("%s: %v, lost %q\n%s", redis, err, result.Lost, result.Text)
		}
	}
	for _, db := range []string{"''", "'/'", "':'", "'1x'", "-1", "x"} {
		if _, err := mulesoft.Import([]byte("spec: {sharedStorage: {redis: {address: 'h:1', DB: " + db + "}}}\n---\n" + flex)); err == nil || !strings.Contains(err.Error(), "no policy can be translated: store.redis.db: ") {
			t.Errorf("database %s: %v", db, err)
		}
	}
	const storage = "spec: {sharedStorage: {redis: {address: 'h:1'}}}\n---\n"
	for blocks, want := range map[string]string{
		"": "    address: 'h:1'\npolicies:", "true": "  on-failure: fail-closed # blockOnUnknownQuota: true\npolicies:", "false": "  on-failure: fail-open # blockOnUnknownQuota: false\npolicies:", "true false": "    address: 'h:1'\npolicies:",
	} {
		file, lost := storage, 0
		for _, block := range strings.Fields(blocks + " -") {
			file += flex
			if block != "-" {
				file += "  blockOnUnknownQuota: " + block + "\n"
			}
			file += "---\n"
		}
		if blocks == "true false" {
			lost = 1
		}
		result, err := mulesoft.Import([]byte(file))
		if err != nil || !strings.Contains(string(result.Text), want) || len(result.Lost) != lost || lost == 1 && !strings.HasPrefix(result.Lost[0], "blockOnUnknownQuota differs between policies: on-failure is one for all (write ") {
			t.Errorf("%q: %v, lost %q\n%s", blocks, err, result.Lost, result.Text)
		}
	}
}
