package yamldoc

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
	"time"

	"github.com/xpkg-dev/xpkg/internal/lazyregexp"
	"github.com/xpkg-dev/xpkg/pkg/xpkg/internal/canonical"
)

// A plain is the interpretation of an unquoted scalar by sigs.k8s.io/yaml, and thereby by
// every Kubernetes tool: the booleans of YAML 1.1, octal with a leading zero, underscores
// in numbers, and dates as strings.
type plain struct {
	kind  plainKind
	word  string // of a literal: null, true or false
	int   int64
	uint  uint64
	float float64
}

type plainKind int

const (
	plainString plainKind = iota
	plainLiteral
	plainInt
	plainUint
	plainFloat
)

var literalNull = plain{kind: plainLiteral, word: "null"}

// resolvePlain interprets an unquoted scalar.
func resolvePlain(s []byte) plain {
	if len(s) == 0 {
		return literalNull
	}
	switch c := s[0]; c {
	case '~', 'n', 'N', 't', 'T', 'f', 'F', 'y', 'Y', 'o', 'O':
		return resolveWord(s)
	case '.':
		if f, ok := specialFloat(s); ok {
			return plain{kind: plainFloat, float: f}
		}
		if f, err := strconv.ParseFloat(string(s), 64); err == nil {
			return plain{kind: plainFloat, float: f}
		}
	case '+', '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		return resolveNumber(s)
	}
	return plain{}
}

func resolveWord(s []byte) plain {
	switch string(s) {
	case "~", "null", "Null", "NULL":
		return literalNull
	case "true", "True", "TRUE", "y", "Y", "yes", "Yes", "YES", "on", "On", "ON":
		return plain{kind: plainLiteral, word: "true"}
	case "false", "False", "FALSE", "n", "N", "no", "No", "NO", "off", "Off", "OFF":
		return plain{kind: plainLiteral, word: "false"}
	}
	return plain{}
}

func specialFloat(s []byte) (float64, bool) {
	switch string(s) {
	case ".nan", ".NaN", ".NAN":
		return math.NaN(), true
	case ".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF":
		return math.Inf(1), true
	case "-.inf", "-.Inf", "-.INF":
		return math.Inf(-1), true
	}
	return 0, false
}

var decimalFloat = lazyregexp.New(`^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$`)

// resolveNumber resolves a scalar that starts with a digit or a sign.
func resolveNumber(s []byte) plain {
	if f, ok := specialFloat(s); ok {
		return plain{kind: plainFloat, float: f}
	}
	if isTimestamp(s) {
		return plain{}
	}
	text := string(bytes.ReplaceAll(s, []byte("_"), nil))
	if i, err := strconv.ParseInt(text, 0, 64); err == nil {
		return plain{kind: plainInt, int: i}
	}
	if u, err := strconv.ParseUint(text, 0, 64); err == nil {
		return plain{kind: plainUint, uint: u}
	}
	if decimalFloat().MatchString(text) {
		if f, err := strconv.ParseFloat(text, 64); err == nil {
			return plain{kind: plainFloat, float: f}
		}
	}
	if i, ok := signedBinary(text); ok {
		return plain{kind: plainInt, int: i}
	}
	return plain{}
}

// signedBinary reads binary numbers whose sign follows the prefix.
func signedBinary(s string) (int64, bool) {
	var digits string
	switch {
	case len(s) > 2 && s[:2] == "0b":
		digits = s[2:]
	case len(s) > 3 && s[:3] == "-0b":
		digits = "-" + s[3:]
	default:
		return 0, false
	}
	i, err := strconv.ParseInt(digits, 2, 64)
	return i, err == nil
}

// isTimestamp reports whether a scalar is a date of YAML 1.1; such a scalar stays a
// string even if it could be a number.
func isTimestamp(s []byte) bool {
	if len(s) < 6 || s[4] != '-' {
		return false
	}
	for _, layout := range []string{
		"2006-1-2T15:4:5.999999999Z07:00",
		"2006-1-2t15:4:5.999999999Z07:00",
		"2006-1-2 15:4:5.999999999",
		"2006-1-2",
	} {
		if _, err := time.Parse(layout, string(s)); err == nil {
			return true
		}
	}
	return false
}

// appendPlain appends the JSON of a scalar without quotes. It returns false for a number
// that JSON cannot represent (infinity or NaN).
func appendPlain(dst, s []byte) ([]byte, bool) {
	switch p := resolvePlain(s); p.kind {
	case plainLiteral:
		return append(dst, p.word...), true
	case plainInt:
		return strconv.AppendInt(dst, p.int, 10), true
	case plainUint:
		return strconv.AppendUint(dst, p.uint, 10), true
	case plainFloat:
		text, err := json.Marshal(p.float)
		return append(dst, text...), err == nil
	}
	return canonical.AppendString(dst, s), true
}

// plainKey returns a key without quotes as the string that it becomes in JSON. It returns
// false for keys that sigs.k8s.io/yaml rejects (null, and numbers outside of the range of
// int64) and for infinities.
func plainKey(s []byte) ([]byte, bool) {
	switch p := resolvePlain(s); p.kind {
	case plainLiteral:
		return []byte(p.word), p.word != "null"
	case plainInt:
		return strconv.AppendInt(nil, p.int, 10), true
	case plainUint:
		return nil, false
	case plainFloat:
		// sigs.k8s.io/yaml writes a key with 32 bits.
		short := float64(float32(p.float))
		return strconv.AppendFloat(nil, p.float, 'g', -1, 32), !math.IsInf(short, 0) && !math.IsNaN(short)
	}
	return s, true
}
