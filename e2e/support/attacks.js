/**
 * Attack texts that an agent could send to run a script, load a resource or open a page: our own lists, combined with
 * every place in markdown where text can be.
 *
 * Each attack calls `hit(N)` or requests `/N` from the sink, so that a successful attack identifies itself.
 *
 * @typedef {object} Attack
 * @property {number} number
 * @property {string} text  markdown
 */

/** Markup that runs, loads or navigates. @param {string} js @param {string} url @returns {string[]} */
const markup = (js, url) => [
  `<script>${js}</script>`,
  `<SCRIPT SRC=${url}></SCRIPT>`,
  `<script\n>${js}</script\n>`,
  `<script/x>${js}</script>`,
  `<scr<script>ipt>${js}</scr</script>ipt>`,
  `<script type=module>${js}</script>`,
  `<script src="data:text/javascript,${js}"></script>`,
  `<img src=x onerror=${js}>`,
  `<img src=${url}>`,
  `<img srcset="${url} 1x">`,
  `<img/src="x"/onerror="${js}"/>`,
  `<img src=\`x\`onerror=${js}//`,
  `<image src=x onerror=${js}>`,
  `<IMG """><SCRIPT>${js}</SCRIPT>">`,
  `<img src=x onerror=&#104;it&#40;${js.slice(4, -1)}&#41;>`,
  `<picture><source srcset=${url}><img></picture>`,
  `<svg onload=${js}>`,
  `<svg/onload=${js}//`,
  `<svg><script>${js}</script></svg>`,
  `<svg><script href=${url} /></svg>`,
  `<svg><animate onbegin=${js} attributeName=x dur=1s>`,
  `<svg><set onbegin=${js} attributeName=x>`,
  `<svg><a xlink:href="javascript:${js}"><text y=20>x</text></a></svg>`,
  `<svg><image href=${url} /></svg>`,
  `<svg><use href="data:image/svg+xml,<svg id='x' xmlns='http://www.w3.org/2000/svg'><image href='${url}'/></svg>#x" />`,
  `<svg><foreignObject><iframe srcdoc="<script>${js}</script>"></foreignObject></svg>`,
  `<math><a href="javascript:${js}">x</a></math>`,
  `<math><maction actiontype="statusline#${url}" href="javascript:${js}">x</maction></math>`,
  `<iframe src="javascript:${js}"></iframe>`,
  `<iframe src=${url}></iframe>`,
  `<iframe srcdoc="<script>parent.${js}</script>"></iframe>`,
  `<object data=${url}></object>`,
  `<object data="javascript:${js}"></object>`,
  `<embed src=${url}>`,
  `<base href=${url}/>`,
  `<meta http-equiv=refresh content="0;url=${url}">`,
  `<link rel=stylesheet href=${url}>`,
  `<link rel=preload as=image href=${url}>`,
  `<link rel=prefetch href=${url}>`,
  `<style>@import '${url}';</style>`,
  `<style>*{background:url(${url})}</style>`,
  `<div style="background:url(${url})">x</div>`,
  `<form action=${url}><button autofocus>go</button></form>`,
  `<form><button formaction="javascript:${js}">go</button></form>`,
  `<isindex action="javascript:${js}" type=submit>`,
  `<input autofocus onfocus=${js}>`,
  `<input type=image src=${url}>`,
  `<select autofocus onfocus=${js}></select>`,
  `<textarea autofocus onfocus=${js}></textarea>`,
  `<details open ontoggle=${js}>x</details>`,
  `<video poster=${url}></video>`,
  `<video src=${url} onerror=${js}></video>`,
  `<audio src=${url} autoplay onerror=${js}></audio>`,
  `<video><source onerror=${js}></video>`,
  `<video><track src=${url} default></video>`,
  `<body onload=${js}>`,
  `<body background=${url}>`,
  `<table background=${url}><td>x</table>`,
  `<a href="javascript:${js}">x</a>`,
  `<a href="java&Tab;script:${js}">x</a>`,
  `<a href="https://a.example" onclick=${js}>x</a>`,
  `<a href=${url} ping=${url} target=_top>x</a>`,
  `<area href="javascript:${js}">`,
  `<div onpointerover=${js} onclick=${js} tabindex=0 autofocus onfocus=${js}>x</div>`,
  `<x onclick=${js} tabindex=1>x</x>`,
  `<button onclick=${js} class=copy>Copy</button>`,
  `<marquee onstart=${js}>x</marquee>`,
  `<dialog open onclose=${js}><form method=dialog><button>x</button></form></dialog>`,
  `<template><script>${js}</script></template>`,
  `<template shadowrootmode=open><img src=x onerror=${js}></template>`,
  `<portal src=${url}>`,
  `<frameset onload=${js}><frame src=${url}></frameset>`,
  `<b/alt="1"onmouseover=${js}>x</b>`,
  `</p></div></code></pre></td><script>${js}</script>`,
  `</span></button></figcaption></figure><img src=x onerror=${js}>`,
  `"><img src=x onerror=${js}>`,
  `'><img src=x onerror=${js}>`,
  `" onfocus="${js}" autofocus x="`,
  `\` onpointerover=${js} x=\``,
  `&lt;script&gt;${js}&lt;/script&gt;`,
  `&#60;img src=x onerror=${js}&#62;`,
  `&#x3c;img src=x onerror=${js}&#x3e;`,
  `\\<img src=x onerror=${js}>`,
  `<\0script>${js}</script>`,
  `<s\u200bcript>${js}</script>`,
  `\uff1cimg src=x onerror=${js}\uff1e`,
  `<x:script xmlns:x="http://www.w3.org/1999/xhtml">${js}</x:script>`,
  `{{constructor.constructor('${js}')()}}\${${js}}<%= ${js} %>`,
  `<form id=x><input name=attributes><input name=innerHTML></form><img name=getElementById>`,
  `\u202e>${js}=rorreno x=crs gmi<`,
];

/**
 * Markup that changes its meaning when it is parsed, serialized and parsed again.
 * @param {string} js
 * @returns {string[]}
 */
const mutations = (js) => {
  const image = `<img src=x onerror=${js}>`;
  return [
    `<math><mtext><table><mglyph><style><!--</style><img title="--&gt;${image}">`,
    `<math><mtext><table><mglyph><style><math><table id="</style>${image}">`,
    `<form><math><mtext></form><form><mglyph><style></math>${image}`,
    `<svg></p><style><a id="</style>${image}">`,
    `<svg><style>${image}</style></svg>`,
    `<svg><desc><noscript>${image}</noscript></desc></svg>`,
    `<math><annotation-xml encoding="text/html"><style>${image}</style></annotation-xml></math>`,
    `<math><mi//xlink:href="data:x,<script>${js}</script>">`,
    `<noscript><p title="</noscript>${image}">`,
    `<noembed><p title="</noembed>${image}">`,
    `<noframes><p title="</noframes>${image}">`,
    `<style><p title="</style>${image}">`,
    `<title><p title="</title>${image}">`,
    `<textarea><p title="</textarea>${image}">`,
    `<xmp><p title="</xmp>${image}">`,
    `<iframe><p title="</iframe>${image}">`,
    `<select><template><style></select>${image}</style></template>`,
    `<select><option><style></option></select>${image}</style>`,
    `<template><template><p title="</template></template>${image}">`,
    `<p id="</p>${image}">`,
    `<!--><script>${js}</script>-->`,
    `<!-- --!>${image}-->`,
    `<!-->${image}-->`,
    `<!--\n-->${image}`,
    `<!-- <!-- -->${image} -->`,
    `<![CDATA[${image}]]>`,
    `<svg><![CDATA[><![CDATA[]]>${image}]]></svg>`,
    `<?xml version=1?>${image}`,
    `<? ${image} ?>`,
    `<!DOCTYPE x [<!ENTITY y "${image}">]>&y;`,
    `</${image}`,
    `</a onmouseover=${js} ${image}`,
    `<a><a href="javascript:${js}">x</a></a>`,
    `<table><tr><td><table><a href="javascript:${js}">x</table></table>`,
    `<listing>&lt;img src=x onerror=${js}&gt;</listing>`,
    `<plaintext>${image}`,
    `<option><style></option></select><b>${image}</style></option>`,
    `<a title="${'`'}</a>${image}${'`'}">`,
    `<b title="\n\n${image}\n\n">`,
    `<div title="a\n\n${image}">`,
    `<pre>\n\n${image}\n\n</pre>`,
    `<ruby><rtc><svg><title></rtc>${image}`,
    `<form><input></form><form id=a></form><button form=a formaction=javascript:${js}>x</button>`,
    `<a href="&#1;javascript:${js}">x</a>`,
    `<img src="x\` \`<script>${js}</script>"\` \`>`,
  ];
};

/** Places for markup, marked by `%`. */
const PLACES = [
  '%',
  'words % words',
  '# %',
  '%\n===',
  '- %',
  '- [x] %',
  '1. a\n   %',
  '> %',
  '> - > %',
  '*%*',
  '**a % b**',
  '~~%~~',
  '`%`',
  '`` % ``',
  '```\n%\n```',
  '```html\n%\n```',
  '```svg\n%',
  '``` %\nx\n```',
  '~~~%\nx',
  '    %',
  '|a|\n|-|\n|%|',
  '|%|b|\n|-|-|\n|c|d|',
  '[%](https://a.example)',
  '[a](https://a.example "%")',
  '![%](https://a.example/c.png)',
  "![a](https://a.example/c.png '%')",
  "[a]: https://a.example '%'\n\n[a]",
  '[^1]: %',
  '[^%]: a\n\n[^%]',
  '$%$',
  '$$\n%\n$$',
  '<div>\n%\n</div>',
  '<!-- % -->',
  '`src/%.rs:1` src/%.rs:1',
  'https://a.example/%',
  'www.a.example/%',
  '*a **b ~~c `d` % ~~** e*',
];

/** Places where markdown splits or quotes the text, which matters for mutations. */
const MUTATION_PLACES = ['%', 'words % words', '- %', '> %', '|a|\n|-|\n|%|', '[%](https://a.example)', '`%`'];

/** Places for a URL. */
const LINKS = [
  '%',
  '<%>',
  '[a](%)',
  '[a](<%>)',
  '[a](% "t")',
  '[https://good.example](<%>)',
  '[`code`](<%>)',
  '[*a* **b**](%)',
  '![a](%)',
  '![a](<%>)',
  '[![a](%)](https://a.example)',
  '[![a](https://a.example)](<%>)',
  '[![a](<%>)](<%>)',
  '[R]: %\n\n[R]',
  '[R]: <%>\n\n[R] ![R] [a][R]',
  '[a][R]\n\n[R]: <%>',
  '- [a](<%>)',
  '> ![a](<%>)',
  '|[a](<%>)|\n|-|\n|<%>|',
  '[^1]: [a](<%>)\n\n[^1]',
  '(%)',
  '**%**',
];

/** Spellings of a scheme that a browser may still accept as that scheme. @type {((scheme: string) => string)[]} */
const SPELLINGS = [
  (scheme) => `${scheme}:`,
  (scheme) => `${[...scheme].map((letter, at) => (at % 2 ? letter : letter.toUpperCase())).join('')}:`,
  (scheme) => ` ${scheme}:`,
  (scheme) => `\u0001${scheme}:`,
  (scheme) => `\u00a0${scheme}:`,
  (scheme) => `\u2003${scheme}:`,
  (scheme) => `\ufeff${scheme}:`,
  (scheme) => `${scheme.slice(0, 4)}\t${scheme.slice(4)}:`,
  (scheme) => `${scheme.slice(0, 4)}\n${scheme.slice(4)}:`,
  (scheme) => `${scheme.slice(0, 4)}&#9;${scheme.slice(4)}:`,
  (scheme) => `${scheme.slice(0, 4)}&#x0A;${scheme.slice(4)}:`,
  (scheme) => `${scheme.slice(0, 4)}&Tab;${scheme.slice(4)}:`,
  (scheme) => `${scheme.slice(0, 4)}&NewLine;${scheme.slice(4)}:`,
  (scheme) => `&#13;${scheme}:`,
  (scheme) => `${scheme}&colon;`,
  (scheme) => `${scheme}&#58;`,
  (scheme) => `${scheme}&#x0000003A;`,
  (scheme) => `&#${scheme.charCodeAt(0)};${scheme.slice(1)}:`,
  (scheme) => `&#00000${scheme.charCodeAt(0)};${scheme.slice(1)}:`,
  (scheme) => `&#x${scheme.charCodeAt(0).toString(16)};${scheme.slice(1)}:`,
  (scheme) => `&#x${scheme.charCodeAt(0).toString(16)}${scheme.slice(1)}:`,
  (scheme) => `%${scheme.charCodeAt(0).toString(16)}${scheme.slice(1)}:`,
  (scheme) => `${scheme}\\:`,
  (scheme) => `${scheme}%3A`,
  (scheme) => `${scheme.slice(0, 4)}\u200b${scheme.slice(4)}:`,
  (scheme) => `${scheme.slice(0, 4)}\u00ad${scheme.slice(4)}:`,
  (scheme) => `\u202e${scheme}:`,
  (scheme) => `${scheme.replace('s', '\u017f')}:`,
  (scheme) => `https:${scheme}:`,
  (scheme) => `view-source:${scheme}:`,
  (scheme) => `&amp;#${scheme.charCodeAt(0)};${scheme.slice(1)}:`,
];

/** @param {string} js @param {string} url @returns {string[]} */
const addresses = (js, url) => {
  const page = `<script>parent.${js}</script>`;
  const encoded = Buffer.from(page).toString('base64');
  return [
    ...SPELLINGS.map((spelled) => `${spelled('javascript')}${js}`),
    ...SPELLINGS.filter((_, at) => at % 3 === 0).map((spelled) => `${spelled('vbscript')}${js}`),
    ...SPELLINGS.filter((_, at) => at % 3 === 1).map((spelled) => `${spelled('data')}text/html;base64,${encoded}`),
    `javascript://a.example/%0a${js}`,
    `javascript://a.example/?&#10;${js}`,
    `javascript:void(${js})//https://a.example`,
    `javascript:/*https://a.example*/${js}`,
    `data:text/html,${page}`,
    `data:image/svg+xml,<svg xmlns='http://www.w3.org/2000/svg' onload='${js}'/>`,
    'blob:https://a.example/1',
    'file:///etc/passwd',
    'filesystem:https://a.example/temporary/x',
    'about:blank',
    'chrome://settings',
    'intent://a.example#Intent;end',
    'ms-settings:x',
    url,
    url.replace('http:', ''),
    url.replace('http://', '/\\'),
    url.replace('http://', '\\\\'),
    url.replace('http://', 'http:\\\\'),
    url.replace('http://', 'http:'),
    url.replace('http://', 'hTTp:&#47;&#47;'),
    url.replace('http://', 'https://good.example@'),
    url.replace('http://', 'https://good.example\\@'),
    url.replace('http://', 'ws://'),
    url.replace('http://', 'ftp://'),
    `${url}" onclick="${js}`,
    `${url}' onfocus='${js}' autofocus='`,
    `${url}\`onpointerover=${js}\``,
    `${url}><img src=x onerror=${js}>`,
    `${url}/&quot;&gt;&lt;script&gt;${js}&lt;/script&gt;`,
    `${url}/%22%3E%3Cscript%3E${js}%3C/script%3E`,
    `${url}/\u202emoc.doog`,
    'https://\u0430pple.example',
    `mailto:a@b.example?subject=<script>${js}</script>`,
    `mailto:"><img src=x onerror=${js}>@b.example`,
    `mailto:javascript:${js}`,
    '#fragment',
    '?query',
    'liminal-note:1',
    `liminal-note:"><script>${js}</script>`,
  ];
};

/** All attacks. @param {string} sink  the origin that records requests @returns {Attack[]} */
export function attacks(sink) {
  /** @type {Attack[]} */
  const all = [];
  /** @param {string[]} places @param {(js: string, url: string) => string[]} payloads @param {number} step */
  const cross = (places, payloads, step) => {
    const { length } = payloads('', '');
    for (const [at, place] of places.entries()) {
      for (let which = at % step; which < length; which += step) {
        const number = all.length;
        const payload = payloads(`hit(${number})`, `${sink}/${number}`)[which];
        // Link labels are shared by the texts of one message, and the first definition wins.
        all.push({ number, text: place.replaceAll('%', () => payload).replaceAll(/\bR\b/g, () => `r${number}`) });
      }
    }
  };
  // Half of the payloads in each place, each payload in half of the places.
  cross(PLACES, markup, 2);
  cross(MUTATION_PLACES, mutations, 1);
  cross(LINKS, addresses, 1);
  return all;
}

/**
 * Joins attacks into one message. An attack whose markup could absorb the following ones is put into a block quote of
 * its own.
 * @param {Attack[]} some
 */
export function asMessage(some) {
  const apart = some.map(({ text }) => (/```|~~~|\$\$/.test(text) ? text.replaceAll(/^/gm, '> ') : text));
  return apart.join('\n\n');
}
