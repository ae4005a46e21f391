package main

import (
	"encoding/csv"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/floodgate-go/floodgate/cmd/floodgate/internal/accesslog"
)

// flagError returns an error that describes the valid values of a flag.
func flagError(err error) error {
	var invalid *pflag.InvalidValueError
	if !errors.As(err, &invalid) {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	want := map[string]string{"int": "a whole number", "int64": "a whole number", "bool": "true or false", "duration": "a duration such as 5m"}[invalid.GetFlag().Value.Type()]
	if want == "" {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	return fmt.Errorf("%w: --%s: %q: want %s", errUsage, invalid.GetFlag().Name, invalid.GetValue(), want)
}

// parseFields reads the values of --fields.
func parseFields(values []string) (accesslog.Fields, error) {
	wrong := func(text, problem string) error {
		return fmt.Errorf("--fields: %q: %s: want NAME=FIELD such as time=when, where NAME is one of %s", text, problem, strings.Join(accesslog.FieldNames, ", "))
	}
	fields := accesslog.Fields{}
	for _, value := range values {
		items, err := csv.NewReader(strings.NewReader(value)).Read()
		if err != nil {
			return nil, wrong(value, "is not a comma-separated list")
		}
		for _, item := range items {
			name, path, found := strings.Cut(item, "=")
			_, twice := fields[name]
			switch {
			case !found:
				return nil, wrong(item, "has no equals sign")
			case !slices.Contains(accesslog.FieldNames, name):
				return nil, wrong(item, "unknown name")
			case path == "":
				return nil, wrong(item, "the field is missing")
			case twice:
				return nil, wrong(item, "the name is given twice")
			}
			fields[name] = path
		}
	}
	return fields, nil
}
