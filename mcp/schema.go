package mcp

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
)

// The advertised dialect and the bounds that every integer carries: integers on
// the wire are safe integers of JavaScript.
const (
	dialect = "http://json-schema.org/draft-07/schema#"
	maxSafe = 1<<53 - 1
	minSafe = -maxSafe
)

// Patterns of ids, as advertised. The checks are hand-written (see idText): a
// bridge shares this package's start-up and compiles no regular expression.
const (
	panePattern     = `^%\d+$`
	windowPattern   = `^@\d+$`
	sessionPattern  = `^\$\d+$`
	variablePattern = `^[A-Za-z][A-Za-z0-9_]*$`
)

// schema is a JSON schema. encoding/json sorts the keys of maps, which makes
// the advertised bytes stable.
type schema map[string]any

// raw encodes a schema once, at start. Go values of schemas always encode.
func (s schema) raw() json.RawMessage {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil {
		panic("schema does not encode: " + err.Error())
	}
	return bytes.TrimRight(b.Bytes(), "\n")
}

// with returns a copy with one more key.
func (s schema) with(key string, value any) schema {
	c := maps.Clone(s)
	c[key] = value
	return c
}

// Leaves of output schemas.
func stringOut() schema  { return schema{"type": "string"} }
func booleanOut() schema { return schema{"type": "boolean"} }

func integerOut() schema {
	return schema{"type": "integer", "minimum": minSafe, "maximum": maxSafe}
}

func countOut() schema {
	return schema{"type": "integer", "minimum": 0, "maximum": maxSafe}
}

func patternOut(pattern string) schema {
	return schema{"type": "string", "pattern": pattern}
}

func enumOut(values ...string) schema {
	return schema{"type": "string", "enum": values}
}

func arrayOut(items schema) schema { return schema{"type": "array", "items": items} }

// mapOut is an object with free keys.
func mapOut(value schema) schema {
	return schema{"type": "object", "propertyNames": stringOut(), "additionalProperties": value}
}

// orNull allows null beside a leaf: as a list of types where the leaf has no
// constraints, else as two alternatives.
func orNull(s schema) schema {
	if len(s) == 1 {
		return schema{"type": []any{s["type"], "null"}}
	}
	return schema{"anyOf": []any{s, schema{"type": "null"}}}
}

// objectOut is a closed object whose every property is always present.
func objectOut(properties map[string]schema) schema {
	return schema{
		"type":                 "object",
		"additionalProperties": false,
		"properties":           properties,
		"required":             slices.Sorted(maps.Keys(properties)),
	}
}

// output is the root of an output schema.
func output(properties map[string]schema) schema {
	return objectOut(properties).with("$schema", dialect)
}

// Shared shapes of results. tmux's own columns may be any safe integer, counts
// of ours are never negative.

func placementOut(more map[string]schema) schema {
	p := map[string]schema{
		"index":       integerOut().with("description", "Window index in that session."),
		"sessionId":   patternOut(sessionPattern).with("description", "Session id such as $1."),
		"sessionName": stringOut(),
	}
	maps.Copy(p, more)
	return objectOut(p)
}

// metadataOut adds the accounting of cut strings and of left-out placements.
func metadataOut(p map[string]schema, placement schema) schema {
	p["metadataComplete"] = booleanOut().with("description", "No string of this row was shortened.")
	p["omittedMetadataBytes"] = countOut().with("description", "UTF-8 bytes cut from the strings of this row.")
	if placement != nil {
		p["placements"] = arrayOut(placement).with("description", "Session and window index pairs that lead here.")
		p["placementsComplete"] = booleanOut().with("description", "No placement was left out.")
		p["omittedPlacements"] = countOut().with("description", "Placements left out at the end.")
	}
	return objectOut(p)
}

func paneViewOut() schema {
	return metadataOut(map[string]schema{
		"active":       booleanOut().with("description", "It is the active pane of its window."),
		"command":      stringOut().with("description", "Foreground command as tmux reports it."),
		"cwd":          stringOut().with("description", "Current directory."),
		"dead":         booleanOut().with("description", "The process has ended; remain-on-exit keeps the pane."),
		"height":       integerOut(),
		"id":           patternOut(panePattern).with("description", "Pane id; use this as the target."),
		"index":        integerOut(),
		"isAttended":   booleanOut().with("description", "A person is looking at this pane now."),
		"isCallerPane": booleanOut().with("description", "The caller itself runs in this pane."),
		"title":        stringOut(),
		"width":        integerOut(),
		"windowId":     patternOut(windowPattern).with("description", "Window id such as @1."),
		"windowName":   stringOut(),
	}, placementOut(nil))
}

func windowViewOut() schema {
	return metadataOut(map[string]schema{
		"id":     patternOut(windowPattern).with("description", "Window id such as @1."),
		"layout": stringOut().with("description", "tmux layout; usable again only while metadataComplete is true."),
		"name":   stringOut(),
		"panes":  integerOut(),
		"zoomed": booleanOut(),
	}, placementOut(map[string]schema{
		"active": booleanOut().with("description", "It is the current window of that session."),
	}))
}

func sessionViewOut() schema {
	return metadataOut(map[string]schema{
		"attachedClients": integerOut().with("description", "People's clients attached to it."),
		"id":              patternOut(sessionPattern).with("description", "Session id such as $1."),
		"name":            stringOut(),
		"windows":         integerOut(),
	}, nil)
}

// listOut is the result of a listing: rows from the head, and what did not fit.
func listOut(name string, row schema) schema {
	return output(map[string]schema{
		name:             arrayOut(row),
		"complete":       booleanOut().with("description", "No row was left out."),
		"omittedEntries": integerOut().with("description", "Rows left out at the end."),
	})
}
