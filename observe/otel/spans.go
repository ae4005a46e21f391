package otelobserve

import (
	"context"
	"strings"
	"unicode/utf8"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/floodgate-go/floodgate/core"
)

// addEvent adds an event with the decision to the span of the request.
func addEvent(ctx context.Context, limiter string, rules []core.Rule, d *core.Decision, rule, limit int) {
	span := trace.SpanFromContext(ctx)
	if !span.IsRecording() {
		return
	}
	attrs := []attribute.KeyValue{
		attribute.String("limiter", limiter),
		attribute.Bool("allowed", d.Allowed),
		attribute.String("reason", d.Reason.String()),
		attribute.Int64("cost", d.Cost),
	}
	if rule >= 0 && d.Reason <= core.ReasonOverLimit { // the limit has decided
		attrs = append(attrs,
			attribute.String("rule", rules[rule].Name),
			attribute.String("limit", rules[rule].Limits[limit].Name),
			attribute.Int64("remaining", d.Remaining))
	}
	if d.RetryAfter > 0 && d.RetryAfter != core.Never {
		attrs = append(attrs, attribute.Float64("retry_after", d.RetryAfter.Seconds()))
	}
	if d.DryRun {
		attrs = append(attrs, attribute.Bool("dry_run", true))
	}
	if d.Degraded {
		attrs = append(attrs, attribute.Bool("degraded", true))
	}
	if d.Err != nil {
		attrs = append(attrs, attribute.String("error", shown(d.Err.Error())))
	}
	span.AddEvent("floodgate.decision", trace.WithAttributes(attrs...))
}

// longestError is how many bytes of an error's text are kept.
const longestError = 1024

// shown returns the beginning of an error's text, which may quote what a client has sent. It is
// UTF-8, because an exporter of OTLP drops a whole batch of spans for one text that is not.
func shown(text string) string {
	if len(text) > longestError {
		end := longestError
		for end > longestError-utf8.UTFMax && !utf8.RuneStart(text[end]) {
			end--
		}
		text = text[:end]
	}
	return strings.ToValidUTF8(text, "\ufffd")
}
