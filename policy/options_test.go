package policy_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/policy"
)

func TestNilArgumentsAreNamed(t *testing.T) {
	var memory *core.Memory
	for want, option := range map[string]policy.Option{
		"policy: an option is nil: write one such as policy.Log(log), or none": nil,
		"policy: WithStore: ": policy.WithStore(memory),
	} {
		set, err := policy.Parse("f", []byte("policies: [{name: a, limits: 1/h}]"), option)
		if set != nil || !errors.Is(err, core.ErrConfig) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "nil") {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
