package resilient

import "testing"

// A client chooses its key, and may choose the name of another rule.
func TestAKeyThatIsNamedLikeARuleIsAnotherKey(t *testing.T) {
	a := newAsking()
	user, ip := a.rule("user"), a.rule("ip")
	_, one := a.shard(user, []byte("ip"))
	_, other := a.shard(ip, []byte("user"))
	_, own := a.shard(user, []byte("user"))
	_, ownToo := a.shard(ip, []byte("ip"))
	if one == other || own == ownToo {
		t.Errorf("two keys are taken for one: %x and %x, %x and %x", one, other, own, ownToo)
	}
}
