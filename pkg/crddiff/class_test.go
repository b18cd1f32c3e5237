package crddiff

import "testing"

func TestClassesAreReadAgain(t *testing.T) {
	for _, want := range []Class{Safe, Care, Breaking} {
		text, err := want.MarshalText()
		if err != nil {
			t.Fatal(err)
		}
		var got Class
		if err := got.UnmarshalText(text); err != nil || got != want {
			t.Errorf("%s: got %s, %v", text, got, err)
		}
	}
	if err := new(Class).UnmarshalText([]byte("needs care")); err == nil {
		t.Error("another text is a class")
	}
}
