/** The page of one session. */

import { connectBridge } from './bridge.js';

connectBridge((message) => {
  if (message.type === 'init') document.title = message.session.title;
});
