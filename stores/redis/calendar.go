package redisstore

import (
	"errors"
	"fmt"

	"github.com/floodgate-go/floodgate/core"
)

// refuseZones returns an error for limits whose windows are those of a calendar.
func refuseZones(rules []core.StoreRule) error {
	var errs []error
	for _, r := range rules {
		for _, l := range r.Limits {
			if l.Zone != nil {
				errs = append(errs, fmt.Errorf("%w: rule %q, limit %q: Zone: %v: a store in Redis does not count by the calendar: leave it out, or count in the process or in memcached",
					core.ErrConfig, r.Name, l.Name, l.Zone))
			}
		}
	}
	return errors.Join(errs...)
}
