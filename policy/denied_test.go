package policy_test

import (
	"fmt"
	"testing"

	"github.com/floodgate-go/floodgate/internal/redistest"
)

// A denied address is denied whatever becomes of the store.
func TestDenyListsNeedNoStore(t *testing.T) {
	for _, onFailure := range []string{"local", "fail-open", "fail-closed"} {
		s := instance(t, "store: {redis: {address: \"127.0.0.1:1\"}, on-failure: "+onFailure+"}\npolicies: [{name: p, deny: [203.0.113.0/24], limits: 1000/h}]")
		for range 8 {
			s.expect(403, "GET", "/", from("203.0.113.7"))
		}
	}
	redis := redistest.Start(t)
	s := instance(t, "store: {redis: {address: \""+redis.Addr+"\", timeout: 5s}}\npolicies: [{name: p, deny: [203.0.113.0/24], limits: 1000/h}]")
	s.expect(403, "GET", "/", from("203.0.113.7"))
	if got := redis.MustDo("DBSIZE"); got != ":0" {
		t.Errorf("a denied address left keys in the store: DBSIZE is %s", got)
	}
}

// Whether a policy counts in the store depends on no other policy's name.
func TestAPolicysPlaceDependsOnNoOtherName(t *testing.T) {
	for name, other := range map[string]string{
		"p-staff":     "{name: p, counting: local, match: {paths: [/other]}, tiers: {default: 3/h, staff: unlimited}, tier: method}",
		"p.deny-list": "{name: p, counting: local, match: {paths: [/other]}, limits: 3/h}",
		"p.r":         "{name: p, counting: local, match: {paths: [/other]}, rules: [{name: r, tiers: {default: 3/h}, tier: method}]}",
		"unrelated":   "{name: p, counting: local, match: {paths: [/other]}, limits: 3/h}",
	} {
		redis := redistest.Start(t)
		file := fmt.Sprintf("store: {redis: {address: %q, timeout: 5s}, on-failure: fail-closed}\npolicies:\n  - {name: %s, limits: 3/h, match: {paths: [/shared]}}\n  - %s\n", redis.Addr, name, other)
		allowed := 0
		for range 3 {
			s := instance(t, file)
			for range 3 {
				if s.send("GET", "/shared").Code == 200 {
					allowed++
				}
			}
		}
		if allowed != 3 {
			t.Errorf("a policy %s beside %s: three instances allow %d, want 3", name, other, allowed)
		}
	}
}

// A tier may be named so that its rule looks like a list of denied addresses.
func TestARuleThatLooksLikeADenyList(t *testing.T) {
	redis := redistest.Start(t)
	file := fmt.Sprintf("store: {redis: {address: %q, timeout: 5s}, on-failure: fail-closed}\npolicies:\n  - {name: p, rules: [{name: deny, tier: 'header[\"x-tier\"]', tiers: {default: unlimited, list: 3/h}}]}\n", redis.Addr)
	codes := ""
	for range 2 {
		s := instance(t, file)
		for range 2 {
			codes += fmt.Sprint(s.send("GET", "/", header("X-Tier", "list")).Code, " ")
		}
	}
	if codes != "200 200 200 429 " {
		t.Errorf("two instances answer %s, want three times 200 and then 429", codes)
	}
}
