package controller_test

import (
	"flag"
	"os"
	"testing"
)

// Tests wait more than they work, so more of them run at once than there are processors. Most of
// them wait for an API server of their own.
const concurrency = "64"

func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", concurrency); err != nil {
		panic(err)
	}
	code := m.Run()
	shared.end()
	os.Exit(code)
}
