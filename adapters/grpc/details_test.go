package grpclimit_test

import (
	"context"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/status"

	grpclimit "github.com/floodgate-go/floodgate/adapters/grpc"
	"github.com/floodgate-go/floodgate/core"
)

// The details of an error name the rule and the limit, which have names of their own.
func TestTheDetailsNameTheRuleAndTheLimit(t *testing.T) {
	l := core.Must(core.New(core.Config{Rules: []core.Rule{{Name: "tenant", Limits: []core.Limit{{Name: "per-hour", Quota: 0, Window: time.Hour}}}}}))
	d, err := l.Take(t.Context(), 1, core.Hit{Rule: "tenant", Key: "k"})
	if err != nil || d.Allowed {
		t.Fatal(d, err)
	}
	for _, detail := range status.Convert(grpclimit.Deny(context.Background(), d)).Details() {
		if q, ok := detail.(*errdetails.QuotaFailure); ok {
			if v := q.GetViolations()[0]; v.GetSubject() != "rule:tenant" || v.GetQuotaId() != "per-hour" || v.GetQuotaValue() != 0 {
				t.Errorf("violation %v", v)
			}
			return
		}
	}
	t.Error("no detail has the violations")
}
