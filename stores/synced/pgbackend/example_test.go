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
	ctx := context.Background()
	pool, err := pgxpool.New(ctx, "postgres://127.0.0.1:1/app?sslmode=disable") // nobody listens there
	if err != nil {
		fmt.Println(err)
		return
	}
	defer pool.Close()
	store, err := synced.New(pgbackend.New(pool), synced.Config{Interval: time.Hour})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(store.Close(ctx)) // nothing was counted
	// Output: <nil>
}
