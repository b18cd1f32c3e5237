package controller_test

import (
	"flag"
	"os"
	"testing"
)

// Tests that share a manager wait more than they work, so more of them run at once
// than there are processors.
const concurrency = "16"

func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", concurrency); err != nil {
		panic(err)
	}
	code := m.Run()
	shared.end()
	os.Exit(code)
}
