package mulesoft

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

// limit writes a limit.
func limit(quota, milliseconds int64, algorithm core.Algorithm) string {
	return fmt.Sprintf("      - {maximumRequests: %d, timePeriodInMilliseconds: %d, algorithm: %v}\n", quota, milliseconds, algorithm)
}

// whole reads a whole number of a mapping.
func whole(m mapping, field string, most int64) (int64, error) {
	var n int64
	switch v := m[field].(type) {
	case nil:
		return 0, fmt.Errorf("%s is missing (want a whole number from 1 to %d)", field, most)
	case int:
		n = int64(v)
	case int64:
		n = v
	case uint64:
		n = int64(min(v, 1<<62)) //nolint:gosec // it is bounded
	default:
		return 0, fmt.Errorf("%s: %v: want a whole number from 1 to %d", field, m[field], most)
	}
	if n < 1 || n > most {
		return 0, fmt.Errorf("%s: %d: want a whole number from 1 to %d", field, n, most)
	}
	return n, nil
}

// oneLimit reads the two fields of a limit.
func oneLimit(m mapping) (quota, milliseconds int64, err error) {
	quota, err = whole(m, "maximumRequests", core.MaxQuota)
	milliseconds, err2 := whole(m, "timePeriodInMilliseconds", int64(core.MaxWindow/time.Millisecond))
	return quota, milliseconds, errors.Join(err, err2)
}

// boolean reads true or false.
func boolean(m mapping, field string) (value, given bool, err error) {
	switch v := m[field].(type) {
	case nil:
		return false, false, nil
	case bool:
		return v, true, nil
	default:
		return false, false, fmt.Errorf("%s: %v: want true or false", field, v)
	}
}

// rateLimiting writes a policy without the field counting; "" if it cannot be
// translated. shared is whether it counts in the shared storage.
func (w *writer) rateLimiting(name string, s source, comments *strings.Builder) (body string, shared bool) {
	lose := func(what string) { comments.WriteString(w.lose(name, what)) }
	remark := func(what string) { comments.WriteString("  # " + line(what) + "\n") }
	for _, field := range rest(s.config, "rateLimits", "keySelector", "exposeHeaders", "clusterizable", "blockOnUnknownQuota") {
		lose(field + " is not known")
	}
	limits := w.limits(s.config["rateLimits"], lose, remark)
	if limits == "" {
		return "", false
	}
	selector, isText := s.config["keySelector"].(string)
	if !isText && s.config["keySelector"] != nil {
		lose(fmt.Sprintf("keySelector: %v: want text", s.config["keySelector"]))
		return "", false
	}
	key, err := Translate(selector)
	if err != nil {
		lose(fmt.Sprintf("keySelector: %q: %v", selector, err))
		return "", false // with any other key, the limits would mean something else
	}
	for _, r := range key.Remarks {
		remark(r)
	}
	if key.Expression != "" {
		body = "    key: " + quoted(key.Expression) + "\n    missing: own-bucket\n"
	}
	body += "    limits:\n" + limits
	body += w.headers(s.config, lose)
	return body, w.counting(s.config, lose, remark)
}

// limits writes the limits of a policy; "" if there are none.
func (w *writer) limits(all any, lose, remark func(string)) string {
	items, _ := all.([]any)
	if len(items) == 0 {
		lose("rateLimits is missing (want a list of {maximumRequests: 3, timePeriodInMilliseconds: 10000})")
		return ""
	}
	quotas := map[int64]int64{} // by window
	var windows []int64
	for i, item := range items {
		m, _ := item.(mapping)
		quota, window, err := oneLimit(m)
		if err != nil {
			lose(fmt.Sprintf("rateLimits[%d]: %s", i, strings.ReplaceAll(err.Error(), "\n", "; ")))
			return ""
		}
		for _, field := range rest(m, "maximumRequests", "timePeriodInMilliseconds") {
			lose(fmt.Sprintf("rateLimits[%d].%s is not known", i, field))
		}
		if other, twice := quotas[window]; twice {
			remark(fmt.Sprintf("of the limits %d and %d in %d ms, only the smaller one matters", other, quota, window))
			quota = min(quota, other)
		} else {
			windows = append(windows, window)
		}
		quotas[window] = quota
	}
	if len(windows) > core.MaxLimits {
		lose(fmt.Sprintf("rateLimits has %d limits: at most %d", len(windows), core.MaxLimits))
		return ""
	}
	text := ""
	for _, window := range windows {
		text += limit(quotas[window], window, core.FixedWindow)
	}
	return text
}

func (w *writer) headers(config mapping, lose func(string)) string {
	expose, _, err := boolean(config, "exposeHeaders")
	if err != nil {
		lose(err.Error())
	}
	if expose {
		return "    headers: x-milliseconds\n"
	}
	return ""
}

// counting returns whether a policy counts in the shared storage.
func (w *writer) counting(config mapping, lose, remark func(string)) bool {
	shared, given, err := boolean(config, "clusterizable")
	if err != nil {
		lose(err.Error())
	}
	if _, _, err := boolean(config, "blockOnUnknownQuota"); err != nil {
		lose(err.Error())
	}
	if given && !shared {
		return false
	}
	if !w.shared {
		const how = "there is no shared storage in this file: write store: {redis: {address: redis:6379}} at its beginning, and counting: shared"
		if given {
			lose("clusterizable: true: " + how)
		} else {
			remark("clusterizable is true by default: " + how)
		}
		return false
	}
	return true
}

func (w *writer) spikeControl(name string, s source, comments *strings.Builder) string {
	lose := func(what string) { comments.WriteString(w.lose(name, what)) }
	for _, field := range rest(s.config, "maximumRequests", "timePeriodInMilliseconds", "delayTimeInMillis", "delayAttempts", "queuingLimit", "exposeHeaders") {
		lose(field + " is not known")
	}
	quota, window, err := oneLimit(s.config)
	if err != nil {
		lose(strings.ReplaceAll(err.Error(), "\n", "; "))
		return ""
	}
	wait := ""
	if attempts := s.config["delayAttempts"]; attempts != nil && fmt.Sprint(attempts) != "0" {
		times, err := whole(s.config, "delayAttempts", 1000)
		milliseconds, err2 := whole(s.config, "delayTimeInMillis", 3_600_000)
		if err := errors.Join(err, err2); err != nil {
			lose(strings.ReplaceAll(err.Error(), "\n", "; "))
		} else {
			wait = fmt.Sprintf("    wait: %dms\n", times*milliseconds)
		}
	}
	if most := s.config["queuingLimit"]; most != nil {
		lose(fmt.Sprintf("queuingLimit: one bound holds for all policies (write local: {max-waiting: %v})", most))
	}
	algorithm := core.SlidingLog
	if quota > core.MaxLogQuota {
		algorithm = core.SlidingWindow
		fmt.Fprintf(comments, "  # A sliding_log has at most %d hits: sliding_window is close to it.\n", core.MaxLogQuota)
	}
	return "    limits:\n" + limit(quota, window, algorithm) + wait + w.headers(s.config, lose)
}
