"""Whether the texts of a page can be read, as an expression for a browser."""

TOO_PALE = """(() => {
    const numbers = (colour) => colour.match(/[0-9.]+/g).map(Number);
    const part = (value) => (value /= 255) <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
    const light = ([r, g, b]) => 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
    const behind = (one) => {
        for (; one; one = one.parentElement) {
            const [r, g, b, a = 1] = numbers(getComputedStyle(one).backgroundColor);
            if (a > 0.5) return [r, g, b];
        }
        return [255, 255, 255];
    };
    const opacity = (one) => one ? Number(getComputedStyle(one).opacity) * opacity(one.parentElement) : 1;
    const over = (front, back, share) => front.map((value, n) => share * value + (1 - share) * back[n]);
    const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    const pale = [];
    while (texts.nextNode()) {
        const one = texts.currentNode.parentElement;
        if (!texts.currentNode.data.trim() || !one.getClientRects().length || one.closest('noscript, script')) continue;
        const under = behind(one), colour = numbers(getComputedStyle(one).color).slice(0, 3);
        const [front, back] = [light(over(colour, under, opacity(one))), light(under)];
        const contrast = (Math.max(front, back) + 0.05) / (Math.min(front, back) + 0.05);
        if (contrast < 4.5) pale.push(`${texts.currentNode.data}: ${contrast.toFixed(1)}`);
    }
    return [pale, light(behind(document.body))];
})()"""
"""[each text with a contrast below 4.5 : 1, and its contrast; how light the page is, from 0 to 1]."""
