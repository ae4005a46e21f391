package notcharged_test

import (
	"errors"
	"fmt"
	"net"
	"testing"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/stores/internal/notcharged"
)

func TestErrorMarksAndUnmarkTakesTheMarkOff(t *testing.T) {
	cause := &net.AddrError{Err: "full"}
	err := notcharged.Error(cause)
	if !errors.Is(err, core.ErrNotCharged) || !errors.Is(err, cause) || err.Error() != "full" || errors.Is(err, core.ErrContended) {
		t.Errorf("%v: want the text and the error that was marked", err)
	}
	if again := notcharged.Error(err); errors.Unwrap(again) != cause { //nolint:errorlint // the mark alone is between them
		t.Errorf("%v has been marked twice", again)
	}
	wrapped := fmt.Errorf("limiter: %w", err)
	got := notcharged.Unmark(wrapped)
	if errors.Is(got, core.ErrNotCharged) || got.Error() != "limiter: full" || !errors.Is(got, cause) || errors.Is(got, core.ErrContended) ||
		!errors.As(got, new(*net.AddrError)) || errors.As(got, new(*net.OpError)) {
		t.Errorf("%v is still marked, or says something else", got)
	}
	if got := notcharged.Unmark(cause); !errors.Is(got, cause) {
		t.Errorf("%v, want the error that has no mark", got)
	}
	if notcharged.Error(nil) != nil || notcharged.Unmark(nil) != nil {
		t.Error("nil is marked")
	}
}
