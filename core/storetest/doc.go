// Package storetest tests that a core.Store keeps its contract. It replays
// recorded decisions of other software, compares random operations with a plain
// model, and tests the contract under concurrency and with odd input.
//
//	func TestVectors(t *testing.T)     { storetest.Vectors(t, newStore) }
//	func TestConformance(t *testing.T) { storetest.Run(t, newStore) }
//	func TestGuarantees(t *testing.T)      { storetest.Guarantees(t, promised, newInstances) }
//	func TestOperations(t *testing.T)  { storetest.Operations(t, newStore) }
//	func TestShared(t *testing.T)      { storetest.Shared(t, newStores) } // of a store that processes share
//
// where newStore is a [Factory]:
//
//	func newStore(t testing.TB, clock func() time.Time) core.Store { ... }
package storetest
