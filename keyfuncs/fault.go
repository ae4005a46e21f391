package keyfuncs

import (
	"errors"
	"fmt"

	"github.com/floodgate-go/floodgate/core"
)

// fault is what is wrong with a field. It is the end of a sentence that begins with the
// field's name.
type fault string

// Error implements error.
func (f fault) Error() string { return string(f) }

const (
	faultTwice      fault = "is given twice"
	faultInQuery    fault = "must not be in the URL's query"
	faultUnreadable fault = "cannot be read"
	faultEscape     fault = "is not escaped correctly"
	faultMany       fault = "cannot be read: there are too many fields"
	faultSpelling   fault = "is given with another spelling of its name"
	faultDiffers    fault = "is given twice with different values"
)

// refused returns the error for a request that is at fault. Its Detail, which the client
// may see, has the kind, the name and the fault. Kind and name are configuration.
func refused(kind, name string, err error) error {
	var detail *core.BadRequestError
	var f fault
	switch {
	case errors.As(err, &f):
		return &core.BadRequestError{Detail: fmt.Sprintf("the %s %q %s", kind, name, f)}
	case errors.As(err, &detail):
		return &core.BadRequestError{Detail: fmt.Sprintf("the %s %q: %s", kind, name, detail.Detail)}
	default:
		return fmt.Errorf("%w: %w", refused(kind, name, faultUnreadable), err)
	}
}
