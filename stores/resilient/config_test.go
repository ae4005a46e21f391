package resilient_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/stores/resilient"
)

func TestWrongConfigurationIsNamed(t *testing.T) {
	_, err := resilient.New(nil, resilient.Config{Meanwhile: 7, Instances: -1, Timeout: -1, Failures: -2, Retry: time.Microsecond})
	if !errors.Is(err, core.ErrConfig) {
		t.Fatal(err)
	}
	for _, want := range []string{"Store: nil", "Meanwhile: 7", "Instances: -1", "Timeout: -1ns", "Failures: -2", "Retry: 1µs"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in:\n%v", want, err)
		}
	}
	memory := core.Must(core.NewMemory(core.MemoryConfig{}))
	if _, err := resilient.New(memory, resilient.Config{Meanwhile: resilient.ModeOpen, Instances: 2}); err == nil {
		t.Error("instances without counters: no error")
	}
	for _, c := range []resilient.Config{
		{Instances: resilient.MaxInstances, Timeout: time.Millisecond, Failures: 1, Retry: time.Millisecond},
		{Meanwhile: resilient.ModeOpen, Instances: 1}, {Meanwhile: resilient.ModeClosed, Instances: 1},
	} {
		s, err := resilient.New(core.Must(core.NewMemory(core.MemoryConfig{})), c)
		if err != nil {
			t.Errorf("%+v: %v", c, err)
			continue
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := resilient.New(memory, resilient.Config{MaxKeys: -1}); err == nil || !strings.Contains(err.Error(), "MaxKeys: -1") {
		t.Error(err)
	}
}
