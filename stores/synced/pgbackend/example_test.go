package pgbackend_test

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/floodgate-go/floodgate/stores/synced"
	"github.com/floodgate-go/floodgate/stores/synced/pgbackend"
)

func ExampleNew() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	pool, err := pgxpool.New(ctx, "postgres://127.0.0.1:1/app?sslmode=disable") // nobody listens there
	if err != nil {
		fmt.Println(err)
		return
	}
	defer pool.Close()
	backend, err := pgbackend.New(ctx, pool)
	if err != nil {
		fmt.Println("the tables cannot be made")
		return
	}
	store, err := synced.New(backend, synced.Config{Interval: time.Second})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer store.Close(ctx) //nolint:errcheck // nothing was counted
	// Output: the tables cannot be made
}

// A program that must start while the server is down.
func ExampleNewLazy() {
	ctx := context.Background()
	pool, err := pgxpool.New(ctx, "postgres://127.0.0.1:1/app?sslmode=disable") // nobody listens there
	if err != nil {
		fmt.Println(err)
		return
	}
	defer pool.Close()
	backend, err := pgbackend.NewLazy(pool)
	if err != nil {
		fmt.Println(err)
		return
	}
	store, err := synced.New(backend, synced.Config{Interval: time.Hour})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(store.Close(ctx))
	// Output: <nil>
}
