package transcript

// Unstyle reads one row of `capture-pane -e` as a person would: without the
// sequences for colours and hyperlinks, and with box characters for line
// drawing, which plain captures give as letters. acs tells whether line drawing
// was on where the row begins, false for the first row of a capture; on is the
// same for the next row.
func Unstyle(row string, acs bool) (text string, on bool) {
	raw, on := unstyle(row, acs)
	return readText(raw, true), on
}
