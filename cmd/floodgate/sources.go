package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/floodgate-go/floodgate/policy"
)

// sourceFiles are files that take the place of sources of quotas, which only the program
// has: NAME=FILE.
type sourceFiles []string

func (s *sourceFiles) flag(c *cobra.Command) {
	c.Flags().StringArrayVar((*[]string)(s), "quotas", nil, "a file with the rows of a source of quotas, such as customers=customers.quotas; without it the source is empty; may be repeated")
}

// check returns what is wrong with the flag.
func (s *sourceFiles) check() error {
	for _, text := range *s {
		if name, path, found := strings.Cut(text, "="); !found || name == "" || path == "" {
			return fmt.Errorf("--quotas: %q: want NAME=FILE, with the name of a source in the policy file", text)
		}
	}
	return nil
}

// options returns the sources.
func (s *sourceFiles) options() []policy.Option {
	opts := []policy.Option{policy.WithQuotas("", noQuotas{})}
	for _, text := range *s {
		name, path, _ := strings.Cut(text, "=")
		opts = append(opts, policy.WithQuotas(name, policy.QuotaFile(path)))
	}
	return opts
}

// noQuotas is an empty source.
type noQuotas struct{}

// Quotas implements [policy.QuotaSource].
func (noQuotas) Quotas(context.Context, func(key, quotas string) error) error { return nil }
