package names_test

import (
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/floodgate-go/floodgate/internal/names"
)

func TestANameIsClaimedOnceForAServer(t *testing.T) {
	first, second := names.New("a", false), names.New("a", false)
	if err := first.Claim("api"); err != nil {
		t.Fatal(err)
	}
	if err := first.Claim("api"); err == nil || !strings.Contains(err.Error(), "this store already") {
		t.Errorf("by the same store again: %v", err)
	}
	if err := second.Claim("api"); err == nil || !strings.Contains(err.Error(), "another store of this process already counts on a") {
		t.Errorf("by another store: %v", err)
	}
	for what, o := range map[string]*names.Owner{"on another server": names.New("b", false), "apart": names.New("a", true)} {
		if err := o.Claim("api"); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		if err := o.Claim("api"); err == nil {
			t.Errorf("%s, twice: %v", what, err)
		}
		o.Release()
	}
	if err := second.Claim("api"); err == nil {
		t.Error("the release of others has released the name")
	}
	second.Release()
	if err := second.Claim("api"); err == nil {
		t.Error("a store has released a name that it does not have")
	}
	first.Unclaim("api")
	if err := second.Claim("api"); err != nil {
		t.Errorf("after the name was given up: %v", err)
	}
	second.Release()
	if err := first.Claim("api"); err != nil {
		t.Errorf("after all names were given up: %v", err)
	}
	first.Release()
}

func TestOneOfManyClaims(t *testing.T) {
	var wg sync.WaitGroup
	var won atomic.Int64
	for range 50 {
		wg.Go(func() {
			o := names.New("many", false)
			t.Cleanup(o.Release) // for -count=2
			if o.Claim("api") == nil {
				won.Add(1)
			}
		})
	}
	wg.Wait()
	if won.Load() != 1 {
		t.Errorf("%d of 50 stores have the name", won.Load())
	}
}
