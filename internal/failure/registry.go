package failure

import (
	"fmt"
	"slices"
	"strings"
	"sync"
)

var (
	mu    sync.Mutex
	codes = map[string]Code{}
)

// Register adds a code to the table from which the reference documentation is
// generated. It is called once per code, where the code is declared as a
// package-level variable. A second code of the same name is a programming error
// and panics at start, where every test sees it.
func Register(c Code) Code {
	mu.Lock()
	defer mu.Unlock()
	if _, ok := codes[c.Name]; ok {
		panic(fmt.Sprintf("failure: code %s is registered twice", c.Name))
	}
	codes[c.Name] = c
	return c
}

// Codes lists every registered code in the order of its name.
func Codes() []Code {
	mu.Lock()
	defer mu.Unlock()
	out := make([]Code, 0, len(codes))
	for _, c := range codes {
		out = append(out, c)
	}
	slices.SortFunc(out, func(a, b Code) int { return strings.Compare(a.Name, b.Name) })
	return out
}
