package mounting

import (
	"testing"

	"github.com/floodgate-go/floodgate/core"
)

// many is a checker whose values cannot be compared.
type many struct {
	core.Checker
	rules []string
}

func TestNewPlacePanicsIfACheckerCannotBeCompared(t *testing.T) {
	var none *core.Limiter
	for name, row := range map[string]struct {
		c     core.Checker
		works bool
	}{
		"nil":           {nil, false},
		"a nil limiter": {none, false},
		"uncomparable":  {many{new(core.Limiter), []string{"a"}}, false},
		"a pointer":     {&many{}, true},
		"a limiter":     {new(core.Limiter), true},
	} {
		func() {
			defer func() {
				if (recover() == nil) != row.works {
					t.Errorf("%s: works is not %v", name, row.works)
				}
			}()
			NewPlace("test", row.c)
		}()
	}
}
