package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/policy"
)

func grantCommand() *cobra.Command {
	var s stored
	var n int64
	c := s.keyFlags(&cobra.Command{
		Use:   "grant FILE",
		Short: "Give a key extra hits",
		Long: "grant gives a key extra hits in the Redis of a running service: it takes back as many of the hits that the key has used, the newest first, and shows what is left. " +
			"A key never has more left than its whole quota. A rule with a lockout cannot be granted: reset ends a wait.",
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if n < 1 || n > core.MaxQuota {
				return fmt.Errorf("%w: --hits: %d: must be from 1 to %d", errUsage, n, int64(core.MaxQuota))
			}
			return s.open(args[0], c.ErrOrStderr(), func(set *policy.Set) error {
				hits, err := s.hits(set)
				if err != nil {
					return err
				}
				if _, err := s.limiterOf(set).Grant(c.Context(), n, hits...); err != nil {
					return err
				}
				return inspectHits(c.Context(), s.limiterOf(set), hits, c.OutOrStdout())
			})
		},
	})
	c.Flags().Int64Var(&n, "hits", 0, "how many hits")
	return c
}
