package redisstore_test

import (
	"context"
	"slices"
	"time"

	"github.com/floodgate-go/floodgate/stores/swapstore"
)

// goServer is a server in Go, which keeps values under names, and notes when they were written.
type goServer struct {
	values map[string]swapstore.Value
	writes int
}

func (s *goServer) Load(_ context.Context, names []string) (values []swapstore.Value, err error) {
	for _, name := range names {
		values = append(values, s.values[name])
	}
	return values, nil
}

func (s *goServer) Swap(_ context.Context, name string, _ swapstore.Value, value []byte, _ time.Duration) (bool, error) {
	s.set(name, value)
	return true, nil
}

func (s *goServer) Delete(_ context.Context, names []string) error {
	for _, name := range names {
		delete(s.values, name)
	}
	return nil
}

func (s *goServer) set(name string, value []byte) {
	s.writes++
	if delete(s.values, name); len(value) != 1 || value[0] != 2 { // no records are no value
		s.values[name] = swapstore.Value{Value: slices.Clone(value), Version: s.writes}
	}
}
