package replay_test

import "testing"

// A request at fault is denied with 400, because of one policy. The other policies, whose limits
// it has met, have not denied it.
func TestARequestAtFaultIsNotDeniedByAnotherPolicy(t *testing.T) {
	const text = `policies: [{name: a, key: 'header["x-api-key"]', missing: reject, limits: 9/m}, {name: b, key: ip, limits: 2/m}]`
	r := run(t, config(text), line(0, "192.0.2.1", "GET /")+line(1, "192.0.2.1", "GET /")+line(2, "192.0.2.1", "GET /"))
	f := r.Files[0]
	if f.Denied != 3 || f.Bad != 2 {
		t.Errorf("%d denied, %d of them at fault, want 3 and 2", f.Denied, f.Bad)
	}
	for _, p := range f.Policies {
		if want := map[string]int64{"b": 1}[p.Policy]; p.Denied != want {
			t.Errorf("policy %s has denied %d requests, want %d", p.Policy, p.Denied, want)
		}
	}
}
